#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "copies/copy_fetcher.h"
#include "rendezvous/membership.h"

namespace lrun::launcher {

/// The order of the launcher for its copier: a round begins.
struct CopierOrder {
  int round = 0;
  Member self = {};  ///< this node; ranks and addresses of it do not matter

  bool operator==(const CopierOrder&) const = default;
};

/// What the copier tells its launcher. Of each message one part is there.
struct CopierNews {
  int round = 0;                                          ///< of the last order
  std::optional<std::vector<FileOwner>> keeps = {};       ///< whose files it has copies of, as CopyKeeper reports them
  std::optional<std::vector<FetchedFiles>> fetched = {};  ///< of the inherited files of the last order
  std::string refusal = {};                               ///< why the neighbour keeps no copies

  bool operator==(const CopierNews&) const = default;
};

std::string to_json(const CopierOrder& order);
std::string to_json(const CopierNews& news);
/// Empty for what is neither.
std::optional<CopierOrder> copier_order_from_json(std::string_view text);
std::optional<CopierNews> copier_news_from_json(std::string_view text);

}  // namespace lrun::launcher
