#!/usr/bin/env bash
# texts.py lists what people read and nothing else, and refuses what breaks the conventions. usage: texts_test.sh TEXTS_PY
set -euo pipefail
command -v python3 > /dev/null || { echo "skipped: no python3"; exit 77; }
texts=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# texts_in FILE CODE: what is listed of a tree that has only this file
texts_in() {
  rm -rf "$work/src"
  mkdir -p "$work/src/$(dirname "$1")"
  printf '%s\n' "$2" > "$work/src/$1"
  status=0
  "$texts" "$work" > "$work/out" 2> "$work/complaints" || status=1
  sed '/^#/d; /^$/d; /^==/d' "$work/out" > "$work/listed"
}

# lists FILE CODE TEXT...: these texts and no others, without complaint
lists() {
  local file=$1 code=$2
  shift 2
  texts_in "$file" "$code"
  [ "$status" -eq 0 ] || { echo "a complaint about src/$file with $code:"; cat "$work/complaints"; failed=1; }
  if [ $# -eq 0 ]; then : > "$work/expected"; else printf '%s\n' "$@" > "$work/expected"; fi
  diff -u --label expected --label "of src/$file with $code" "$work/expected" "$work/listed" || failed=1
}

# refuses CODE WORDS: it complains with these words
refuses() {
  texts_in cli/a.cc "$1"
  { [ "$status" -ne 0 ] && grep -qF -e "$2" "$work/complaints"; } || { echo "no '$2' about $1"; failed=1; }
}

lists cli/a.cc 'throw UserError("no \"such\" thing", "write another");' 'error    no "such" thing' 'hint     write another'
lists cli/a.cc 'throw UserError("no use of " + f(x, "y") + "'"'"' here", fmt::format("at {:>{}} or {:.1f}", x, y));' \
  "error    no use of {}' here" 'hint     at {} or {}'
lists cli/a.cc 'auto t = name + " is long, and "
  "goes on" + (x ? " with more words" : "") + "."; // not "a comment" of words' \
  'text     {} is long, and goes on{}.' 'text     with more words'
lists cli/a.cc "x = 1'000'000; c = '\"'; print(Severity::kNote, \"two words\");" 'note     two words'
lists cli/a.cc 'print(Severity::kWarning, R"(raw "quoted" words)" + x);' 'warning  raw "quoted" words{}'
lists cli/a.cc 'plan.warnings.push_back("mind the " + gap);' 'warning  mind the {}'
lists cli/a.cc 'f("flag-name", "JSON_KEY", "/a/path", "x"); if (line == "not ours") g(line.starts_with("nor this"));'
lists cli/a.cc 'auto s = choice_of(given, "strategy") + join(words, " or ");' 'text     strategy' 'text     or'
lists report/status_text.cc 'row(json{{"key", 1}, {"rank", 2}}, "running", value["state"]);' 'text     running'
lists report/timeline_html.cc 'page += "<h2 class=\"wide\">Two words</h2>\n" + svg;' 'text     Two words \n{}'
lists verdict/hint_table.cc 'Rule r[] = {{"name", "their words", "", "our own words"}};' 'text     our own words'
lists verdict/native_error.cc 'f("terminate called after");'
lists runtime/a.cc 'f("of another product");'
refuses 'throw UserError("ends with a stop.", "a hint");' 'a full stop at the end'
refuses 'throw UserError("is well", "Write it");' 'a capital letter at the beginning'
refuses 'throw UserError("no \"" + name + "\" here", "a hint");' "the user's text in double quotes"
refuses 'print(Severity::kNote, "two lines\n");' 'a line end in one fact'
exit $failed
