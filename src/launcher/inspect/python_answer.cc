// In: the path of a Python, or what it answered. Out: the words to ask it, or the facts in the answer.
// ask_helpers() calls this.
#include "inspect/python_answer.h"

#include <nlohmann/json.hpp>

#include "base/shortened.h"
#include "base/split.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostTextBytes = 256;
constexpr std::size_t kMostPathBytes = 4096;

/// NCCL comes with a package that torch's wheel requires. A torch without that requirement has it inside, or finds that
/// of the system.
constexpr const char* kQuestion = R"py(
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import importlib.util, json, os, re, runpy

def required_nccl():
    try:
        from importlib import metadata
        for requirement in metadata.requires('torch') or []:
            if requirement.startswith('nvidia-nccl'):
                name = re.match(r'[\w-]+', requirement).group()
                try:
                    return requirement, metadata.version(name)
                except metadata.PackageNotFoundError:
                    return requirement, ''
    except Exception:
        pass
    return '', ''

def loaded_nccl():
    try:
        import ctypes
        number = ctypes.c_int()
        ctypes.CDLL('libnccl.so.2').ncclGetVersion(ctypes.byref(number))
        return '%d.%d.%d' % (number.value // 10000, number.value // 100 % 100, number.value % 100)
    except Exception:
        return ''

facts = {'version': '%d.%d.%d' % sys.version_info[:3], 'path': sys.executable}
spec = importlib.util.find_spec('torch')
if spec and spec.origin:
    torch = runpy.run_path(os.path.join(os.path.dirname(spec.origin), 'version.py'))
    facts['torch'] = str(torch['__version__'])
    facts['cuda'] = torch.get('cuda') or ''
    if facts['cuda']:
        requirement, facts['nccl'] = required_nccl()
        facts['nccl'] = facts['nccl'] or loaded_nccl()
        if requirement and not facts['nccl']:
            facts['missing_nccl'] = re.sub(r'[\s()]', '', requirement.split(';')[0])
print('\n' + json.dumps(facts))
)py";

std::string text_in(const Json& json, const char* name, std::size_t most = kMostTextBytes) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? shortened(found->get_ref<const std::string&>(), most) : "";
}

}  // namespace

std::vector<std::string> python_question(const std::string& path) { return {path, "-B", "-c", kQuestion}; }

std::optional<PythonFacts> parse_python_answer(std::string_view output) {
  const Json json = Json::parse(last_line_of(output), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  PythonFacts facts;
  facts.path = text_in(json, "path", kMostPathBytes);
  facts.version = text_in(json, "version");
  if (facts.version.empty()) return std::nullopt;
  TorchFacts torch;
  torch.version = text_in(json, "torch");
  torch.cuda = text_in(json, "cuda");
  torch.nccl = text_in(json, "nccl");
  torch.missing_nccl = text_in(json, "missing_nccl");
  if (!torch.version.empty()) facts.torch = torch;
  return facts;
}

}  // namespace lrun::launcher
