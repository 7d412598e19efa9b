#include "options.h"

#include <array>
#include <charconv>
#include <limits>
#include <string_view>

#include "errors.h"

namespace fashion_mnist {
namespace {

struct Option {
  std::string_view name;
  std::string_view value;  ///< its name in the help; empty: a switch
  std::string_view help;
  void (*apply)(Options& options, std::string_view name, std::string_view value);
};

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view allowed) {
  throw UsageError("bad value '" + std::string(value) + "' of " + std::string(name) + ": " + std::string(allowed));
}

template <typename Number>
Number number(std::string_view name, std::string_view text, Number least, std::string_view allowed) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool in_range = value >= least && value <= std::numeric_limits<Number>::max();  // false for a NaN
  if (error != std::errc() || end != text.data() + text.size() || !in_range) refuse(name, text, allowed);
  return value;
}

std::int64_t count(std::string_view name, std::string_view text) {
  return number<std::int64_t>(name, text, 1, "a whole number of at least 1");
}

std::filesystem::path path(std::string_view name, std::string_view text) {
  if (text.empty()) refuse(name, text, "a path");
  return text;
}

using Text = std::string_view;
constexpr std::array kOptions{
    Option{"--data", "DIR", "folder of the four idx files, plain or .gz",
           [](Options& options, Text name, Text value) { options.data = path(name, value); }},
    Option{"--epochs", "N", "epochs in all, those before --resume included (default 4)",
           [](Options& options, Text name, Text value) { options.epochs = count(name, value); }},
    Option{"--batch-size", "N", "images of one rank in one step (default 64)",
           [](Options& options, Text name, Text value) { options.batch_size = count(name, value); }},
    Option{"--learning-rate", "X", "of SGD with momentum 0.9 (default 0.05)",
           [](Options& options, Text name, Text value) {
             const double least = std::numeric_limits<double>::min();
             options.learning_rate = number<double>(name, value, least, "a number above 0");
           }},
    Option{"--seed", "N", "of the weights and the order of the images (default: the launcher's)",
           [](Options& options, Text name, Text value) {
             options.seed = number<std::uint64_t>(name, value, 0, "a whole number of at least 0");
           }},
    Option{"--checkpoint", "FILE", "written by rank 0 after every epoch",
           [](Options& options, Text name, Text value) { options.checkpoint = path(name, value); }},
    Option{"--resume", "", "continue from the checkpoint when there is one",
           [](Options& options, Text, Text) { options.resume = true; }},
    Option{"--limit", "N", "train on the first N images only",
           [](Options& options, Text name, Text value) { options.limit = count(name, value); }},
    Option{"--help", "", "this text (also -h)", [](Options& options, Text, Text) { options.help = true; }},
};

const Option& find(std::string_view name) {
  if (name == "-h") name = "--help";
  for (const Option& option : kOptions) {
    if (option.name == name) return option;
  }
  throw UsageError("unknown option '" + std::string(name) + "' (-h shows all)");
}

}  // namespace

Options parse_options(std::span<const char* const> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (!argument.starts_with('-'))
      throw UsageError("unexpected argument '" + std::string(argument) + "' (-h shows all)");
    const std::size_t equals = argument.find('=');
    const Option& option = find(argument.substr(0, equals));
    if (option.value.empty()) {
      if (equals != argument.npos) throw UsageError(std::string(option.name) + " takes no value");
      option.apply(options, option.name, {});
    } else if (equals != argument.npos) {
      option.apply(options, option.name, argument.substr(equals + 1));
    } else if (++i < arguments.size()) {
      option.apply(options, option.name, arguments[i]);
    } else {
      throw UsageError(std::string(option.name) + " needs a value: " + std::string(option.value));
    }
  }
  if (options.resume && options.checkpoint.empty()) throw UsageError("--resume needs --checkpoint FILE");
  return options;
}

std::string help_text() {
  std::string text = "usage: fashion_mnist [options]\nTrains a small convolutional network on Fashion-MNIST.\n\n";
  for (const Option& option : kOptions) {
    std::string left = "  " + std::string(option.name);
    if (!option.value.empty()) left += ' ' + std::string(option.value);
    left.resize(24, ' ');
    text += left + std::string(option.help) + '\n';
  }
  return text;
}

}  // namespace fashion_mnist
