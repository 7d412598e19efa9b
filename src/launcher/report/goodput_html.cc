// In: the time of a job. Out: the part of the HTML page about it. Pure.
#include <fmt/format.h>

#include "base/duration.h"
#include "report/goodput.h"
#include "report/timeline_html.h"

namespace lrun::launcher {

std::string goodput_html(const Goodput& goodput) {
  if (goodput.attempts.empty() || goodput.use.whole() == 0) return {};
  constexpr std::array<std::string_view, 5> kColours{"succeeded", "failed", "part1", "stopped", "part0"};
  std::string bar;
  std::string legend;
  const std::array<NamedUse, 5> uses = named_uses(goodput);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const NamedUse& use = uses[i];
    if (use.ms == 0) continue;
    const double percent = 100 * use.share;
    const std::string words = fmt::format("{} {} ({:.1f} %)", use.name, format_elapsed(Duration(use.ms)), percent);
    bar += fmt::format(R"html(<span style="width: {:.3f}%; background: var(--{})" title="{}: {}"></span>)html", percent,
                       kColours[i], words, use.meaning);
    legend += plot_key(kColours[i], words);
  }
  const std::string size = goodput.attempts.size() > 1 ? ", of " + size_of_job(goodput) : "";
  return fmt::format("<h2>Goodput {:.1f} %{}</h2>\n<div class=\"shares\">{}</div>\n<p class=\"quiet\">{}</p>\n",
                     100 * goodput.share(), size, bar, legend);
}

}  // namespace lrun::launcher
