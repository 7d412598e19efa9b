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
template <std::size_t count>
bool ends_with_one_of(std::string_view word, const std::array<std::string_view, count>& ends) {
  return std::any_of(ends.begin(), ends.end(), [word](std::string_view end) { return word.ends_with(end); });
}

/// 'ghp_…', whatever stands before it.
bool has_form_of_key(std::string_view word) {
  constexpr std::array<std::string_view, 15> kBegins{"sk_live_", "rk_live_",    "ghp_",  "gho_",  "ghu_",
                                                     "ghs_",     "ghr_",        "xoxb-", "xoxp-", "xapp-",
                                                     "glpat-",   "github_pat_", "AKIA",  "ASIA",  "wandb_v1_"};
  // 'hf_' and a name of several words, such as 'hf_text_generation_inference', is no key.
  constexpr std::array<std::string_view, 4> kBeginsOfNames{"sk-", "hf_", "npm_", "pypi-"};
  const auto rest_behind = [word](std::string_view begin) {
    return word.starts_with(begin) ? word.substr(begin.size()) : std::string_view();
  };
  const auto is_key = [&](std::string_view begin) { return rest_behind(begin).size() >= kFewestLetters; };
  const auto is_key_and_no_name = [&](std::string_view begin) {
    const bool is_one_word = rest_behind(begin).find_first_of("_-.") == std::string_view::npos;
    return is_key(begin) && (is_one_word || has_digit(rest_behind(begin)));
  };
  return std::any_of(kBegins.begin(), kBegins.end(), is_key) ||
         std::any_of(kBeginsOfNames.begin(), kBeginsOfNames.end(), is_key_and_no_name) ||
         (word.starts_with("eyJ") && may_be_key(word));
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

/// How much a name tells of its value, from the least on.
enum class Name { kPlain, kOfKeys, kSecret, kPassword };

/// 'max_tokens', 'tokenizer', 'forward_pass' and 'PWD' are no secrets; 'key' and 'sig' are where their value looks so.
Name kind_of_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kPasswords{"secret", "password", "passwd", "passphrase", "apikey"};
  constexpr std::array<std::string_view, 4> kSecrets{"token", "bearer", "credential", "credentials"};
  constexpr std::array<std::string_view, 9> kBeforeKey{"api",     "access",     "private", "auth",  "account",
                                                       "signing", "encryption", "license", "secret"};
  constexpr std::array<std::string_view, 12> kBeforePass{"db",   "sql",      "user", "admin", "root",  "ssh",
                                                         "smtp", "postgres", "mail", "redis", "proxy", "ftp"};
  const std::vector<std::string> parts = parts_of(name);
  std::string folded;
  for (const std::string& part : parts) folded += part;
  const auto begins_with_one_of = [&folded](std::string_view end, const auto& begins) {
    if (!folded.ends_with(end)) return false;
    return ends_with_one_of(std::string_view(folded).substr(0, folded.size() - end.size()), begins);
  };
  const auto is_password = [&](const std::string& part) { return is_one_of(part, kPasswords); };
  const bool has_pwd = parts.back() == "pwd" && parts.size() > 1 && !parts[parts.size() - 2].empty();
  if (has_pwd || std::any_of(parts.begin(), parts.end(), is_password) || ends_with_one_of(folded, kPasswords) ||
      begins_with_one_of("pass", kBeforePass) || begins_with_one_of("pwd", kBeforePass)) {
    return Name::kPassword;
  }
  if (ends_with_one_of(folded, kSecrets) || begins_with_one_of("key", kBeforeKey)) return Name::kSecret;
  const bool is_of_keys = folded.ends_with("key") || parts.back() == "sig" || folded.ends_with("signature");
  return is_of_keys ? Name::kOfKeys : Name::kPlain;
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
    for (std::size_t at = 1; at < text.size(); ++at) {
      if (text[at] == text[0]) return at + 1;
      if (text[at] == '\\') ++at;
    }
    return text.size();
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
  const bool ends_the_line = behind.find_first_not_of(" \t,;}'\"", bytes) == std::string_view::npos;
  const bool may_be_sentence = kind != Name::kPassword || !ends_the_line;
  if (separator.sign == ':' && !is_quoted && !has_digit(value) && may_be_sentence) return {};
  return {separator.bytes + (is_quoted ? 1 : 0), value.size()};
}

/// Of the user and the password in '://user:password@host'.
std::size_t login_bytes(std::string_view rest) {
  const std::size_t at = rest.substr(0, rest.find_first_of("/?# \t'\"")).rfind('@');
  return at == std::string_view::npos ? 0 : at;
}

/// 'Basic' or 'token' in 'Authorization: Basic …'.
bool is_scheme(std::string_view word, std::string_view before) {
  constexpr std::array<std::string_view, 2> kSchemes{"basic", "token"};
  constexpr std::size_t kMostBetween = 20;  // the name, a quote, ': ' and a quote
  if (!is_one_of(lower_case(std::string(word)), kSchemes)) return false;
  before.remove_prefix(before.size() - std::min(before.size(), kMostBetween));
  return lower_case(std::string(before)).find("authorization") != std::string::npos;
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
    const Secret secret = secret_behind(is_scheme(word, text) ? "Bearer" : word, line);
    text += has_form_of_key(word) ? kHidden : word;
    if (secret.bytes == 0) continue;
    text.append(line.substr(0, secret.begin)).append(kHidden);
    line.remove_prefix(secret.begin + secret.bytes);
  }
  return text;
}

std::vector<std::string> without_secrets(std::vector<std::string> argv) {
  Name kind_of_option = Name::kPlain;
  for (std::string& word : argv) {
    const bool is_option = word.starts_with('-');
    const std::size_t equals = word.find('=');
    const Name kind = kind_of_name(std::string_view(word).substr(0, equals));
    const bool is_value =
        !is_option && (kind_of_option >= Name::kSecret || (kind_of_option == Name::kOfKeys && may_be_key(word)));
    kind_of_option = is_option && equals == std::string::npos ? kind : Name::kPlain;
    if (is_value) {
      word = kHidden;
    } else if (kind >= Name::kSecret && equals != std::string::npos) {
      word = word.substr(0, equals + 1).append(kHidden);
    } else {
      word = without_secrets(std::string_view(word));
    }
  }
  return argv;
}

}  // namespace lrun::launcher
