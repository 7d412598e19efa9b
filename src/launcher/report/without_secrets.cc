// In: a command line, or a line that a worker printed. Out: the same without what looks like a secret. Explanations are
// made through it. Pure.
#include "report/without_secrets.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/split.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kHidden = "***";
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kQuotes = "'\"";
constexpr std::size_t kFewestLetters = 16;  ///< of a key

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_of_word(char letter) {
  const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
  return is_letter || is_digit(letter) || letter == '_' || letter == '-' || letter == '.';
}
bool has_digit(std::string_view text) { return std::any_of(text.begin(), text.end(), is_digit); }
bool may_be_key(std::string_view text) { return text.size() >= kFewestLetters && has_digit(text); }

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// 'ghp_…', whatever stands before it.
bool has_form_of_key(std::string_view word) {
  constexpr std::array<std::string_view, 19> kBegins{
      "sk-",    "sk_live_", "rk_live_", "hf_",   "ghp_", "gho_",  "ghu_", "ghs_", "ghr_",     "github_pat_",
      "glpat-", "xoxb-",    "xoxp-",    "xapp-", "npm_", "pypi-", "AKIA", "ASIA", "wandb_v1_"};
  const auto begins = [word](std::string_view begin) {
    return word.starts_with(begin) && may_be_key(word.substr(begin.size()));
  };
  return std::any_of(kBegins.begin(), kBegins.end(), begins) || (word.starts_with("eyJ") && may_be_key(word));
}

/// The parts between '_', '-' and '.', in small letters.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char letter : lower_case(std::string(name))) {
    if (letter == '_' || letter == '-' || letter == '.') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

/// How much a name tells of its value.
enum class Name { kPlain, kOfKeys, kSecret };

/// 'max_tokens', 'tokenizer' and 'token-file' are no secrets; 'key' is one where its value looks like it.
Name kind_of_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kAnyPart{"secret", "password", "passwd", "passphrase", "apikey"};
  constexpr std::array<std::string_view, 8> kLastPart{"token",     "accesstoken", "authtoken",  "bearer",
                                                      "accesskey", "secretkey",   "credential", "credentials"};
  constexpr std::array<std::string_view, 8> kBeforeKey{"api",     "access",  "private",    "auth",
                                                       "account", "signing", "encryption", "license"};
  const std::vector<std::string> parts = parts_of(name);
  const auto is_secret = [&](const std::string& part) { return is_one_of(part, kAnyPart); };
  if (std::any_of(parts.begin(), parts.end(), is_secret) || is_one_of(parts.back(), kLastPart)) return Name::kSecret;
  if (parts.back() != "key") return Name::kPlain;
  return parts.size() > 1 && is_one_of(parts[parts.size() - 2], kBeforeKey) ? Name::kSecret : Name::kOfKeys;
}

std::size_t blanks_at(std::string_view text, std::size_t from) {
  return std::min(text.find_first_not_of(kBlanks, from), text.size()) - from;
}

/// The signs between a name and its value: '=', ': ', '": ', ' '.
struct Separator {
  std::size_t bytes = 0;  ///< 0: no value follows
  char sign = ' ';
};
Separator separator_of(std::string_view name, std::string_view rest) {
  const bool is_quoted = !rest.empty() && kQuotes.find(rest[0]) != std::string_view::npos;
  std::size_t at = is_quoted ? 1 : 0;
  at += blanks_at(rest, at);
  if (at < rest.size() && (rest[at] == '=' || rest[at] == ':')) {
    const char sign = rest[at++];
    return {at + blanks_at(rest, at), sign};
  }
  const bool takes_next_word = name.starts_with('-') || lower_case(std::string(name)) == "bearer";
  const bool has_next_word = takes_next_word && !is_quoted && at > 0 && at < rest.size() && rest[at] != '-';
  return {has_next_word ? at : 0, ' '};
}

/// Where the value that `text` begins with ends, its quotes included.
std::size_t value_bytes(std::string_view text) {
  if (text.empty()) return 0;
  if (kQuotes.find(text[0]) != std::string_view::npos) {
    const std::size_t end = text.find(text[0], 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  return std::min(text.find_first_of(" \t,;&)}]'\""), text.size());
}

/// The bytes of a secret behind a name, from the first of `rest` on; 0 where none follows.
struct Secret {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};
Secret secret_behind(std::string_view name, std::string_view rest) {
  const Name kind = kind_of_name(name);
  if (kind == Name::kPlain) return {};
  const Separator separator = separator_of(name, rest);
  if (separator.bytes == 0) return {};
  const std::string_view behind = rest.substr(separator.bytes);
  const std::size_t bytes = value_bytes(behind);
  const bool is_quoted = bytes > 1 && kQuotes.find(behind[0]) != std::string_view::npos;
  const std::string_view value = is_quoted ? behind.substr(1, bytes - 2) : behind.substr(0, bytes);
  if (kind == Name::kOfKeys && !may_be_key(value)) return {};
  // 'invalid token: expected a number' is a sentence.
  if (separator.sign == ':' && !is_quoted && !has_digit(value)) return {};
  return {separator.bytes + (is_quoted ? 1 : 0), value.size()};
}

/// Of the user and the password in '://user:password@host'.
std::size_t login_bytes(std::string_view rest) {
  const std::size_t end = rest.find_first_of("@/ \t'\"");
  return end != std::string_view::npos && rest[end] == '@' ? end : 0;
}

}  // namespace

std::string without_secrets(std::string_view line) {
  constexpr std::string_view kUrl = "://";
  std::string text;
  while (!line.empty()) {
    if (line.starts_with(kUrl)) {
      const std::size_t login = login_bytes(line.substr(kUrl.size()));
      text.append(kUrl).append(login > 0 ? kHidden : "");
      line.remove_prefix(kUrl.size() + login);
      continue;
    }
    const auto word_end = std::find_if_not(line.begin(), line.end(), is_of_word);
    const std::string_view word = line.substr(0, static_cast<std::size_t>(word_end - line.begin()));
    if (word.empty()) {
      text += line.front();
      line.remove_prefix(1);
      continue;
    }
    line.remove_prefix(word.size());
    text += has_form_of_key(word) ? kHidden : word;
    const Secret secret = secret_behind(word, line);
    if (secret.bytes == 0) continue;
    text.append(line.substr(0, secret.begin)).append(kHidden);
    line.remove_prefix(secret.begin + secret.bytes);
  }
  return text;
}

std::vector<std::string> without_secrets(std::vector<std::string> argv) {
  bool is_secret = false;
  for (std::string& word : argv) {
    const bool is_option = word.starts_with('-');
    const std::size_t equals = word.find('=');
    const bool has_secret_name = kind_of_name(std::string_view(word).substr(0, equals)) == Name::kSecret;
    if (is_secret && !is_option) {
      word = kHidden;
    } else if (has_secret_name && equals != std::string::npos) {
      word = word.substr(0, equals + 1).append(kHidden);
    } else {
      word = without_secrets(std::string_view(word));
    }
    is_secret = is_option && has_secret_name && equals == std::string::npos;
  }
  return argv;
}

}  // namespace lrun::launcher
