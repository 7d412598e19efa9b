# Run by fish: prints the completions of a command line, one a line. usage: complete_fish.fish COMPLETIONS LINE
source $argv[1]/lrun.fish
complete -C $argv[2] | string replace -r '\t.*' ''
exit 0
