#include "runtime/checkpoint/checkpoint_name.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace lrun::detail {
namespace {

constexpr std::size_t kStepDigits = 12;

/// Takes `text` off the front.
bool skip(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

template <class Number>
bool take(std::string_view& rest, Number& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

bool take_kind(std::string_view& rest, CheckpointName& name) {
  if (skip(rest, ".manifest")) {
    name.kind = CheckpointKind::kManifest;
    return true;
  }
  if (!skip(rest, ".part-")) return true;
  name.kind = CheckpointKind::kPart;
  return take(rest, name.part) && skip(rest, "-of-") && take(rest, name.parts) && name.part < name.parts;
}

}  // namespace

std::string spell(const CheckpointName& name) {
  const std::string step = std::to_string(name.step);
  std::string text = "step-" + std::string(kStepDigits - std::min(kStepDigits, step.size()), '0') + step;
  if (name.kind == CheckpointKind::kManifest) text += ".manifest";
  if (name.kind == CheckpointKind::kPart) {
    text += ".part-" + std::to_string(name.part) + "-of-" + std::to_string(name.parts);
  }
  return text + ".ckpt";
}

std::optional<CheckpointName> parse_checkpoint_name(std::string_view text) {
  CheckpointName name;
  std::string_view rest = text;
  if (!skip(rest, "step-") || !take(rest, name.step) || !take_kind(rest, name) || rest != ".ckpt") return std::nullopt;
  if (spell(name) != text) return std::nullopt;  // 'step-7.ckpt': not ours
  return name;
}

}  // namespace lrun::detail
