#!/usr/bin/env bash
# A headless browser lays out the page of `lrun report --html` as it is meant, and fetches nothing for it.
# usage: report_test.sh LRUN; exit 77 (skipped) without a browser.
# shellcheck disable=SC2016
set -euo pipefail
lrun=$1
browser=
for name in chromium chromium-browser google-chrome; do
  ! command -v "$name" > /dev/null || { browser=$name; break; }
done
[ -n "$browser" ] || { echo "SKIPPED: no chromium is installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LRUN_STATE=$work/state HOME=$work XDG_CONFIG_HOME=$work XDG_CACHE_HOME=$work

status=0
"$lrun" -n 3 sh -c 'echo started; [ "$RANK" = 1 ] || exec sleep 1000; sleep 0.2; echo "<b>lost</b>" >&2; exit 7' \
  > "$work/out" 2>&1 || status=$?
[ $status -eq 7 ] || { echo "the run ended with $status"; cat "$work/out"; exit 1; }
"$lrun" report --html "$work/report.html" > "$work/text"

# The measuring script is added to a copy: the page itself forbids scripts.
sed -e '/Content-Security-Policy/d' -e 's|</body>|<script>\
  const boxes = s => [...document.querySelectorAll(s)].map(e => e.getBoundingClientRect());\
  const inside = boxes("svg *").filter(b => b.width > 0).every(b => b.left >= 0 \&\& b.right <= innerWidth);\
  const say = (name, value) => document.body.append(`\\nmeasured ${name} ${value}`);\
  say("bars", boxes("svg g rect[class^=part]").filter(b => b.width >= 1 \&\& b.height > 5).length > 2);\
  say("rows", new Set(boxes("svg rect.part0").map(b => b.top)).size);\
  say("inside", inside); say("scrolls", document.documentElement.scrollWidth > innerWidth);\
  say("failed", getComputedStyle(document.querySelector("svg rect.failed")).fill);\
  say("bold", document.querySelectorAll("b").length);\
  say("fetched", performance.getEntriesByType("resource").length);\
  </script></body>|' "$work/report.html" > "$work/measured.html"
timeout 100 "$browser" --headless --no-sandbox --disable-gpu --no-first-run --window-size=1000,800 \
  --user-data-dir="$work/profile" --dump-dom "file://$work/measured.html" > "$work/dom" 2> "$work/err" ||
  { echo "$browser ended with $?"; tail -5 "$work/err"; exit 1; }

grep -oE '^measured [a-z]+ .*' "$work/dom" | sed 's/<.*//' > "$work/measures" || true
diff -u - "$work/measures" << 'EXPECTED' || { echo "the page is not laid out as it is meant"; exit 1; }
measured bars true
measured rows 3
measured inside true
measured scrolls false
measured failed rgb(212, 60, 60)
measured bold 0
measured fetched 0
EXPECTED
