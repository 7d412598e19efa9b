#pragma once

#include <string>
#include <string_view>

#include "report/timeline.h"

namespace lrun::launcher {

/// The report as one HTML page: the cause of a failure, the rest of the verdict, the plot, charts of memory and CPU, a
/// table of all workers with links to their log files, and the plan. It needs no script and no network, and is dark
/// where the reader's screen is. \param verdict  as it was printed; its first line is the headline
/// \param goodput  as goodput_html(); may be empty
std::string timeline_html(const Timeline& timeline, std::string_view verdict, std::string_view goodput = {});

/// The plot alone, as SVG: a row for each rank, a bar for each attempt, from its start over its milestones to its end.
std::string timeline_svg(const Timeline& timeline);

/// The charts of the memory and CPU that ranks used, with their key. Empty where there are no samples.
std::string usage_html(const Timeline& timeline);

/// An entry of the key to a plot. \param colour  the name of a variable of the page's style
std::string plot_key(std::string_view colour, std::string_view words);

/// Text as HTML shows it.
std::string escape_html(std::string_view text);

}  // namespace lrun::launcher
