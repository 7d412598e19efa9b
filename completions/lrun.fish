# fish completion for lrun(1). Words before PROGRAM are lrun's, PROGRAM and what follows complete as without lrun.

# Prints PROGRAM and the words after it that stand before the cursor; false when PROGRAM is not there yet.
function __lrun_program
    set -l words (commandline -opc)[2..]
    while set -q words[1]
        switch $words[1]
            case --
                set -e words[1]
                break
            case '--wrap@*' \
                '--watch@*' \
                --watch \
                '--debug?rank' \
                --bind \
                '--numa?binding' \
                --timeout \
                '--start?timeout' \
                '--shutdown?timeout' \
                '--hang?timeout' \
                '--hang?signal' \
                '--on?hang' \
                --notice \
                '--signals?to?handle' \
                --devices \
                '--num?gpus' \
                '--num?accelerators' \
                -n \
                -np \
                '--nproc?per?node' \
                '--num?nodes' \
                --nnodes \
                --accelerator \
                --strategy \
                '--process?group?backend' \
                --seed \
                '--master?port' \
                '--rdzv?id' \
                --role \
                -H \
                --hosts \
                --host \
                --hostfile \
                --include \
                --exclude \
                --ssh \
                '--rdzv?endpoint' \
                '--node?rank' \
                '--rdzv?backend' \
                '--rdzv?conf' \
                '--master?addr' \
                --spares \
                '--local?addr' \
                --python \
                --compat \
                --chdir \
                --env \
                --unset \
                --rlimit \
                --wrap \
                --preload \
                --memory-dir \
                --output \
                '--log?dir' \
                '--log?max?bytes' \
                --metrics \
                -r \
                --redirects \
                -t \
                --tee \
                '--local?ranks?filter' \
                '--duplicate?stdout?filters' \
                '--duplicate?stderr?filters' \
                '--log?line?prefix?template' \
                --grace \
                --settle \
                '--max?restarts' \
                '--checkpoint?path' \
                '--restart?backoff' \
                --config
                set -e words[1]
                set -q words[1]; and set -e words[1]
            case '-*'
                set -e words[1]
            case '*'
                break
        end
    end
    set -q words[1]; or return 1
    string escape -- $words
end

# Prints the verbs with a description each.
function __lrun_verbs
    printf '%s\t%s\n' \
        status 'What runs here' \
        logs 'What ranks wrote' \
        runs 'Runs that are kept' \
        report 'What happened in a run' \
        explain 'Why a run ended, in brief' \
        again 'Run it again' \
        stack 'The stack of every rank' \
        doctor 'Problems of this machine' \
        completion 'Completions for a shell' \
        help 'The help of a verb'
end

# Prints what may follow verb $argv[1]: its options, or the runs that left a folder.
function __lrun_complete_verb
    if string match -q -- '-*' (commandline -ct)
        switch $argv[1]
            case doctor
                printf '%s\n' --hosts --json --verbose --help
            case status
                printf '%s\n' --json --watch --help
            case runs explain
                printf '%s\n' --json --help
            case logs
                printf '%s\n' --attempt --follow --grep --stream --tail --help
            case report
                printf '%s\n' --goodput --html --json --help
            case again
                printf '%s\n' --dry-run --help
            case stack
                printf '%s\n' --brief --json --pids --help
            case '*'
                printf '%s\n' --help
        end
        return
    end
    if test (commandline -opc)[-1] = --html
        __fish_complete_path (commandline -ct)
        return
    end
    if test (commandline -opc)[-1] = --stream
        printf '%s\n' stdout stderr
        return
    end
    switch $argv[1]
        case runs doctor
            return
        case completion
            printf '%s\n' bash zsh fish
            return
        case help
            __lrun_verbs
            return
    end
    set -l state $LRUN_STATE
    set -q state[1]; or set state $HOME/.local/state/lrun
    for lock in $state/*/lock
        basename (dirname $lock)
        string match -r '^[A-Za-z0-9._:@%+-]+$' < $lock  # what its job is called
    end
end

function __lrun_complete_program
    set -l line (commandline -opc)
    if set -q line[2]; and string match -q -- $line[2]\t'*' (__lrun_verbs)
        __lrun_complete_verb $line[2]
        return
    end
    set -q line[2]; or __lrun_verbs
    set -l words (__lrun_program)
    set -l current (commandline -ct)
    if set -q words[1]
        complete -C (string join ' ' -- $words (string escape -- $current))
    else
        string match -q -- '-*' $current; and return
        __fish_complete_path $current
        test -n "$current"; and complete -C $current
    end
end

# Prints every strategy with what it does.
function __lrun_strategies
    printf '%s\t%s\n' \
        ddp 'One worker per device, gradients averaged' \
        dp 'One worker, all devices' \
        ddp2 'One worker per node' \
        ddp_sharded 'As ddp, optimizer state split' \
        ddp_spawn 'One worker per node, which executes itself as ranks' \
        ddp_fork 'One worker per node, which forks ranks' \
        ddp_notebook 'As ddp_fork' \
        deepspeed 'Programs written for DeepSpeed' \
        horovod 'Programs written for Horovod' \
        tpu 'One worker per TPU chip, for torch_xla'
end

complete -c lrun -f
complete -c lrun -a '(__lrun_complete_program)'
complete -c lrun -n 'not __lrun_program' -x -l devices -l num-gpus -l num-accelerators -a 'auto -1' -d 'Devices of each node: how many, or which'
complete -c lrun -n 'not __lrun_program' -x -s n -o np -l nproc-per-node -a 'auto cpu gpu xpu' -d 'Workers on each node'
complete -c lrun -n 'not __lrun_program' -x -l num-nodes -l nnodes -d 'Number of nodes'
complete -c lrun -n 'not __lrun_program' -x -l accelerator -a 'auto cpu gpu tpu' -d 'Kind of device'
complete -c lrun -n 'not __lrun_program' -l isolate-gpus -l virtual-local-rank -d 'Each worker sees only its own GPU'
complete -c lrun -n 'not __lrun_program' -x -l bind -a 'none core cache numa socket' -d 'CPUs of each worker'
complete -c lrun -n 'not __lrun_program' -x -l numa-binding -a 'node socket exclusive core-complex' -d 'Torchrun\'s spelling of --bind'
complete -c lrun -n 'not __lrun_program' -l share-gpus -d 'Use GPUs even if others compute on them'
complete -c lrun -n 'not __lrun_program' -x -l strategy -a '(__lrun_strategies)' -d 'How the work is split'
complete -c lrun -n 'not __lrun_program' -x -l process-group-backend -a 'auto nccl gloo shm shm+gloo' -d 'How workers exchange tensors'
complete -c lrun -n 'not __lrun_program' -x -l seed -d 'Seed for all workers'
complete -c lrun -n 'not __lrun_program' -x -l master-port -d 'Port of the workers\' store'
complete -c lrun -n 'not __lrun_program' -x -l rdzv-id -d 'Name of the run'
complete -c lrun -n 'not __lrun_program' -x -l role -d 'Role of all workers'
complete -c lrun -n 'not __lrun_program' -x -s H -l hosts -l host -a '(__fish_print_hostnames)' -d 'Run on these hosts, over ssh'
complete -c lrun -n 'not __lrun_program' -r -F -l hostfile -d 'File with one host per line'
complete -c lrun -n 'not __lrun_program' -x -l include -a '(__fish_print_hostnames)' -d 'Use only these hosts'
complete -c lrun -n 'not __lrun_program' -x -l exclude -a '(__fish_print_hostnames)' -d 'Use all hosts except these'
complete -c lrun -n 'not __lrun_program' -x -l ssh -d 'Command that reaches the other hosts'
complete -c lrun -n 'not __lrun_program' -l copy -d 'Copy lrun to the other hosts'
complete -c lrun -n 'not __lrun_program' -x -l rdzv-endpoint -d 'Where the rendezvous of several nodes is'
complete -c lrun -n 'not __lrun_program' -x -l node-rank -d 'Rank of this node'
complete -c lrun -n 'not __lrun_program' -x -l rdzv-backend -a 'static c10d etcd etcd-v2' -d 'How the launchers find each other'
complete -c lrun -n 'not __lrun_program' -x -l rdzv-conf -d 'Details of the rendezvous'
complete -c lrun -n 'not __lrun_program' -x -l master-addr -d 'Torchrun\'s spelling of the host of the endpoint'
complete -c lrun -n 'not __lrun_program' -x -l spares -d 'Nodes of a Slurm job in reserve'
complete -c lrun -n 'not __lrun_program' -x -l local-addr -d 'Address at which other nodes reach this one'
complete -c lrun -n 'not __lrun_program' -s m -l module -d 'PROGRAM is a Python module'
complete -c lrun -n 'not __lrun_program' -l run-path -d 'PROGRAM is a Python script, whatever its name is'
complete -c lrun -n 'not __lrun_program' -l no-python -d 'Execute PROGRAM directly'
complete -c lrun -n 'not __lrun_program' -r -l python -d 'The Python that runs Python programs'
complete -c lrun -n 'not __lrun_program' -l liblrun -d 'A Python program that carries out --strategy itself'
complete -c lrun -n 'not __lrun_program' -l nested -d 'Started by a worker of another run on purpose'
complete -c lrun -n 'not __lrun_program' -l no-local-rank -d 'No --local_rank=N for programs of DeepSpeed'
complete -c lrun -n 'not __lrun_program' -l use-env -d 'No --local-rank=N for programs of torch.distributed.launch'
complete -c lrun -n 'not __lrun_program' -x -l compat -a 'lrun torchrun torch.distributed.launch' -d 'Use the defaults of this launcher'
complete -c lrun -n 'not __lrun_program' -x -l chdir -a '(__fish_complete_directories)' -d 'Start the workers in this directory'
complete -c lrun -n 'not __lrun_program' -x -l env -a '(set -xn)' -d 'Set a variable for the workers'
complete -c lrun -n 'not __lrun_program' -x -l unset -a '(set -xn)' -d 'Remove a variable for the workers'
complete -c lrun -n 'not __lrun_program' -x -l rlimit -a 'as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack' -d 'Resource limit of the workers'
complete -c lrun -n 'not __lrun_program' -l core -d 'Write core files'
complete -c lrun -n 'not __lrun_program' -x -l wrap -a '(__fish_complete_command)' -d 'Start PROGRAM through this command'
complete -c lrun -n 'not __lrun_program' -x -l preload -d 'Python modules that a fork server imports once'
complete -c lrun -n 'not __lrun_program' -x -l memory-dir -d 'What workers may keep in memory beyond their end'
complete -c lrun -n 'not __lrun_program' -x -l debug-rank -d 'Run this rank under a debugger'
complete -c lrun -n 'not __lrun_program' -x -l output -a 'fold prefix raw rank0 quiet' -d 'How to print the lines of workers'
complete -c lrun -n 'not __lrun_program' -l timestamps -d 'Begin every line with the time'
complete -c lrun -n 'not __lrun_program' -l pty -d 'Let workers write to terminals'
complete -c lrun -n 'not __lrun_program' -l stdin -d 'Rank 0 reads standard input'
complete -c lrun -n 'not __lrun_program' -x -l log-max-bytes -d 'Rotate log files of this size'
complete -c lrun -n 'not __lrun_program' -r -l metrics -d 'Offer metrics at a port or in a file'
complete -c lrun -n 'not __lrun_program' -x -l log-dir -a '(__fish_complete_directories)' -d 'Directory for log files'
complete -c lrun -n 'not __lrun_program' -x -s r -l redirects -d 'Streams that go only to log files'
complete -c lrun -n 'not __lrun_program' -x -s t -l tee -d 'Streams that go to log files and console'
complete -c lrun -n 'not __lrun_program' -x -l local-ranks-filter -d 'Show only these local ranks'
complete -c lrun -n 'not __lrun_program' -x -l duplicate-stdout-filters -d 'Copy lines of stdout with these texts'
complete -c lrun -n 'not __lrun_program' -x -l duplicate-stderr-filters -d 'Copy lines of stderr with these texts'
complete -c lrun -n 'not __lrun_program' -x -l log-line-prefix-template -d 'Prefix of each line'
complete -c lrun -n 'not __lrun_program' -x -l grace -l shutdown-timeout -d 'Time between SIGTERM and SIGKILL'
complete -c lrun -n 'not __lrun_program' -x -l timeout -d 'Stop the run after this time'
complete -c lrun -n 'not __lrun_program' -x -l start-timeout -d 'Time for all workers to call init_process_group()'
complete -c lrun -n 'not __lrun_program' -x -l hang-timeout -d 'Time without progress after which a run hangs'
complete -c lrun -n 'not __lrun_program' -x -l hang-signal -a 'progress cpu' -d 'What counts as progress'
complete -c lrun -n 'not __lrun_program' -x -l on-hang -a 'dump kill restart' -d 'Reaction to a hang'
complete -c lrun -n 'not __lrun_program' -x -l watch -d 'Rule on the lines that workers print'
complete -c lrun -n 'not __lrun_program' -x -l notice -a 'aws azure gcp' -d 'Stop when this machine is about to go'
complete -c lrun -n 'not __lrun_program' -x -l signals-to-handle -a 'SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2' -d 'Signals that end the run'
complete -c lrun -n 'not __lrun_program' -x -l settle -d 'Time after a failure before the others are stopped'
complete -c lrun -n 'not __lrun_program' -x -l max-restarts -d 'Restart after a failure, at most this many times'
complete -c lrun -n 'not __lrun_program' -r -l checkpoint-path -d 'Where the program writes its checkpoints'
complete -c lrun -n 'not __lrun_program' -x -l restart-backoff -d 'Time before the second restart in a row'
complete -c lrun -n 'not __lrun_program' -r -F -l config -d 'File of settings'
complete -c lrun -n 'not __lrun_program' -l print-config -d 'Print every setting and its source'
complete -c lrun -n 'not __lrun_program' -l dry-run -a 'text json' -d 'Show the plan, start nothing'
complete -c lrun -n 'not __lrun_program' -s v -l verbose -d 'Print what lrun does'
complete -c lrun -n 'not __lrun_program' -l version -d 'Print the version'
complete -c lrun -n 'not __lrun_program' -s h -l help -d 'Help: -h one screen, --help everything'
