// In: a Timeline and the verdict. Out: one HTML page around the plots of timeline_svg.cc and usage_html.cc. Called by
// `lrun report --html`.
#include "report/timeline_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/bytes_text.h"
#include "base/duration.h"
#include "base/nearest.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostPageCommandBytes = 2000;

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
)";

constexpr std::string_view kStyle = R"(<style>
:root { --text: #1d2530; --quiet: #66707d; --line: #dde2e8; --paper: #ffffff; --box: #f4f6f8;
  --part0: #c3cfdc; --part1: #8fb4dc; --part2: #5b93d0; --part3: #2f6fb7;
  --succeeded: #2e9d5b; --failed: #d43c3c; --stopped: #8a8f98; --mark: #b06a00; --band: #8fb4dc66;
  --rank0: #2f7fd0; --rank1: #2e9d5b; --rank2: #c08010; --rank3: #9066c8; --rank4: #1d9aa8; --rank5: #c55fa4;
  --rank6: #8a9030; --rank7: #97745f; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --quiet: #97a1ad; --line: #333b46; --paper: #171b21;
  --box: #20262e; --part0: #4a5663; --part1: #4c6f96; --part2: #4d86c4; --part3: #73b0f0; --mark: #f0a640; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--paper); margin: 2em auto;
  max-width: 1000px; padding: 0 1em; }
h1 { font-size: 1.3em; margin: 0 0 .3em; overflow-wrap: anywhere; } h1.cause { color: var(--failed); } h2 { font-size: 1.05em; margin: 1.6em 0 .4em; }
p { margin: .3em 0; } .quiet { color: var(--quiet); }
code, pre { font: 13px/1.45 ui-monospace, monospace; } code { overflow-wrap: anywhere; }
pre { background: var(--box); padding: .8em 1em; border-radius: 6px; overflow-x: auto; white-space: pre-wrap; }
svg { width: 100%; height: auto; margin-top: .6em; font: 12px system-ui, sans-serif; }
svg text { fill: var(--text); } svg .tick { fill: var(--quiet); text-anchor: middle; } svg .rank { text-anchor: end; }
svg .grid { stroke: var(--line); } svg line.mark { stroke: var(--mark); stroke-dasharray: 4 3; }
svg text.mark { fill: var(--mark); } svg text.left { text-anchor: end; }
.part0 { fill: var(--part0); } .part1 { fill: var(--part1); } .part2 { fill: var(--part2); } .part3 { fill: var(--part3); }
.succeeded { fill: var(--succeeded); } .failed { fill: var(--failed); } .stopped { fill: var(--stopped); }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .35em 0 0; } .item { display: inline-block; margin-right: 1em; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25em .7em .25em 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; } a { color: var(--part3); } td a { margin-right: .6em; }
svg .value { fill: var(--quiet); text-anchor: end; } svg .use { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.shares { display: flex; height: 1.2em; border-radius: 4px; overflow: hidden; }
svg .band { fill: var(--band); } figure { margin: 0; } figcaption { color: var(--quiet); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22em), 1fr)); gap: .6em 2em; }
.wide { overflow-x: auto; } .wide > * { min-width: 860px; } summary { cursor: pointer; margin-top: 1.6em; font-weight: bold; }
</style>
)";

/// The legend for the shades and ends of the bars.
std::string legend(const Timeline& timeline) {
  const std::vector<std::string> names = timeline.milestone_names();
  std::string text = R"(<p class="quiet">)" + plot_key("part0", "spawned");
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i) {
    text += plot_key(fmt::format("part{}", i + 1), "after " + escape_html(names[i]));
  }
  return text + plot_key("succeeded", "succeeded") + plot_key("failed", "failed") +
         plot_key("stopped", "stopped by lrun") + "</p>\n";
}

/// The first line of a verdict without 'lrun: error: ', and the rest of it.
struct Headline {
  std::string_view text;
  std::string_view rest;
  bool is_error = false;
};

Headline headline(std::string_view verdict) {
  constexpr std::string_view kError = "lrun: error: ";
  if (!verdict.starts_with(kError)) return {.rest = verdict};
  const std::size_t end = std::min(verdict.find('\n'), verdict.size());
  return {.text = verdict.substr(kError.size(), end - kError.size()),
          .rest = verdict.substr(std::min(end + 1, verdict.size())),
          .is_error = true};
}

std::string outcome(const Timeline& timeline) {
  if (timeline.ended_ms == 0) return fmt::format("Run {}{}", timeline.run_id, timeline.now_ms != 0 ? " goes on" : "");
  return fmt::format(
      "Run {} {}", timeline.run_id,
      timeline.exit_code == 0 ? "succeeded" : fmt::format("ended with exit code {}", timeline.exit_code));
}

std::string title(const Timeline& timeline, const Headline& headline) {
  if (!headline.is_error) return "<h1>" + escape_html(outcome(timeline)) + "</h1>\n";
  return fmt::format("<h1 class=\"cause\">{}</h1>\n<p>Run {}</p>\n", escape_html(headline.text),
                     escape_html(timeline.run_id));
}

/// The hosts of all workers, each once, in the order of their ranks.
std::vector<std::string> hosts_of(const Timeline& timeline) {
  std::vector<std::string> hosts;
  for (const WorkerSpan& worker : timeline.workers) {
    const bool is_new = std::find(hosts.begin(), hosts.end(), worker.node) == hosts.end();
    if (!worker.node.empty() && is_new) hosts.push_back(worker.node);
  }
  return hosts;
}

std::string host_text(const Timeline& timeline) {
  constexpr std::size_t kMostHostsShown = 8;
  const std::vector<std::string> hosts = hosts_of(timeline);
  return hosts.empty() ? std::string() : " on " + escape_html(join_first(hosts, kMostHostsShown));
}

std::string facts(const Timeline& timeline) {
  std::string text = fmt::format("<p><code>{}</code></p>\n<p class=\"quiet\">{}{}, began {}",
                                 escape_html(command_text(timeline.argv, kMostPageCommandBytes)),
                                 escape_html(size_text(timeline)), host_text(timeline), utc_time(timeline.started_ms));
  if (timeline.ended_ms != 0) {
    const Duration took(std::max<std::int64_t>(0, timeline.ended_ms - timeline.started_ms));
    text += fmt::format(", took {}, exit code {} ({})", format_elapsed(took), timeline.exit_code,
                        escape_html(timeline.reason));
  } else if (timeline.now_ms != 0) {
    const Duration lasts(std::max<std::int64_t>(0, timeline.now_ms - timeline.started_ms));
    text += fmt::format(", running for {}", format_elapsed(lasts));
  }
  return text + "</p>\n";
}

std::vector<Milestone> in_order(std::vector<Milestone> milestones) {
  std::stable_sort(milestones.begin(), milestones.end(), [](const auto& a, const auto& b) { return a.ms < b.ms; });
  return milestones;
}

/// A path as a browser opens it.
std::string file_address(std::string_view path) {
  std::string address = "file://";
  for (const char letter : path) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(letter)) != 0 || std::strchr("/._-~", letter) != nullptr;
    address += is_plain ? std::string(1, letter) : fmt::format("%{:02X}", static_cast<unsigned char>(letter));
  }
  return address;
}

std::string links(const WorkerSpan& worker) {
  std::string text;
  for (const std::string& file : worker.log_files) {
    const std::string name = std::filesystem::path(file).stem();
    text += fmt::format("<a href=\"{}\">{}</a>", file_address(file), escape_html(name));
  }
  return text;
}

std::string row(const WorkerSpan& worker, std::int64_t start) {
  const auto seconds = [&](std::int64_t ms) { return static_cast<double>(ms - start) / 1000; };
  std::string milestones;
  for (const Milestone& milestone : in_order(worker.milestones)) {
    milestones +=
        fmt::format("{}{} at {:.3f}\u00a0s", milestones.empty() ? "" : ", ", milestone.what, seconds(milestone.ms));
  }
  return fmt::format(
      "<tr><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td>"
      "<td class=\"number\">{}</td><td class=\"number\">{:.3f} s</td><td>{}</td><td>{}</td><td "
      "class=\"number\">{}</td></tr>\n",
      worker.rank, worker.attempt, escape_html(worker.ending), links(worker),
      worker.peak_memory_kib >= 0 ? kib_text(worker.peak_memory_kib) : "",
      worker.ended_ms != 0 ? fmt::format("{:.3f} s", seconds(worker.ended_ms)) : "", seconds(worker.spawned_ms),
      escape_html(milestones), escape_html(worker.node), worker.pid);
}

std::string table(const Timeline& timeline) {
  std::string text =
      "<h2>Workers</h2>\n<div class=\"wide\"><table>\n<tr><th class=\"number\">rank</th>"
      "<th class=\"number\">attempt</th><th>end</th><th>logs</th><th class=\"number\">peak memory</th>"
      "<th class=\"number\">ended</th><th class=\"number\">spawned</th><th>on its way</th><th>host</th><th "
      "class=\"number\">pid</th></tr>\n";
  for (const WorkerSpan& worker : timeline.workers) text += row(worker, timeline.started_ms);
  return text + "</table></div>\n";
}

std::string plan(const Timeline& timeline) {
  if (timeline.plan.empty()) return {};
  return "<details><summary>Plan and environment</summary>\n<pre>" + escape_html(timeline.plan) + "</pre></details>\n";
}

}  // namespace

std::string plot_key(std::string_view colour, std::string_view words) {
  return fmt::format(R"html(<span class="item"><span class="key" style="background: var(--{})"></span>{}</span> )html",
                     colour, words);
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '&') {
      escaped += "&amp;";
    } else if (letter == '<') {
      escaped += "&lt;";
    } else if (letter == '>') {
      escaped += "&gt;";
    } else if (letter == '"') {
      escaped += "&quot;";
    } else if ((byte < 0x20 && letter != '\n' && letter != '\t') || byte == 0x7f) {
      escaped += "\uFFFD";  // no control character is allowed in a page
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string timeline_html(const Timeline& timeline, std::string_view verdict, std::string_view goodput) {
  const Headline cause = headline(verdict);
  std::string page(kHead);
  page += "<title>lrun " + escape_html(timeline.run_id) + "</title>\n";
  page += kStyle;
  page += "</head>\n<body>\n" + title(timeline, cause) + facts(timeline);
  if (!cause.rest.empty()) page += "<h2>Verdict</h2>\n<pre>" + escape_html(cause.rest) + "</pre>\n";
  page += "<h2>Timeline</h2>\n<div class=\"wide\">" + timeline_svg(timeline) + "</div>\n" + legend(timeline) +
          std::string(goodput) + usage_html(timeline) + table(timeline) + plan(timeline);
  return page + "</body>\n</html>\n";
}

}  // namespace lrun::launcher
