#include "options.h"

#if defined(__linux__)
#include <sched.h>
#endif
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mycelia::lite {

namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The whole of a small file; C's functions, since those of C++ bring half a megabyte of locales.
bool read_text(const std::string& path, std::string* text) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return false;
  if (!S_ISREG(about.st_mode)) return errno = EINVAL, false;  // a pipe or device may have no end
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  char block[4096];
  text->clear();
  for (size_t n; (n = std::fread(block, 1, sizeof(block), file)) > 0;) text->append(block, n);
  const bool fine = !std::ferror(file);
  std::fclose(file);
  return fine;
}

}  // namespace

Status read_config(const std::string& path, Config* config) {
  std::string text, section;
  if (!read_text(path, &text)) return {kParameterInvalid, "cannot read the configuration '" + path + "': " + std::strerror(errno)};
  size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string where = "'" + path + "', line " + std::to_string(number) + ": ";
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (line.front() == '[' && line.back() == ']') {
      section = trimmed(line.substr(1, line.size() - 2));
      continue;
    }
    const size_t equals = line.find('=');
    if (section.empty() || equals == std::string::npos)
      return {kParameterInvalid, where + "expected [section] and then key=value, but got '" + line + "'"};
    const std::string key = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
    if (Status status = check_config(section, key, value); !status) return {status.code, where + status.text};
    (*config)[section][key] = value;
  }
  return {};
}

void set_config(std::shared_ptr<Config>* config, const std::string& section, const std::string& key, const std::string& value) {
  if (!*config) *config = std::make_shared<Config>();
  (**config)[section][key] = value;
}

Status check_config(const std::string& section, const std::string& key, const std::string& value) {
  if (section == "execution_plan") {
    if (value != "data_type:float16" && value != "data_type:float32")
      return {kParameterInvalid, "[execution_plan] " + key + " must be data_type:float16 or data_type:float32, but got '" + value + "'"};
    return {};
  }
  if (section == "common" && key == "enable_pre_inference") {
    if (value != "true" && value != "false")
      return {kParameterInvalid, "[common] enable_pre_inference must be true or false, but got '" + value + "'"};
    return {};
  }
  if (section == "common" && key == "accuracy") {
    if (value != "normal" && value != "fast") return {kParameterInvalid, "[common] accuracy must be normal or fast, but got '" + value + "'"};
    return {};
  }
  return {kParameterInvalid, "[" + section + "] " + key + " is not known; there are [execution_plan] with names of nodes and [common] "
                             "accuracy and enable_pre_inference"};
}

bool is_fast(const Options& options) {
  if (!options.config) return false;
  const auto common = options.config->find("common");
  if (common == options.config->end()) return false;
  const auto accuracy = common->second.find("accuracy");
  return accuracy != common->second.end() && accuracy->second == "fast";
}

std::vector<int32_t> cores_by_speed(int32_t affinity, const char* root) {
  std::vector<std::pair<int64_t, int32_t>> cores;
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return {};
  for (int32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    int64_t speed = 0;
    for (const char* fact : {"/cpu_capacity", "/cpufreq/cpuinfo_max_freq"}) {
      std::string text;
      if (read_text(std::string(root) + "/cpu" + std::to_string(core) + fact, &text) && (speed = std::atoll(text.c_str())) > 0) break;
    }
    cores.emplace_back(affinity == 2 ? speed : -speed, core);
  }
#endif
  std::stable_sort(cores.begin(), cores.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int32_t> order;
  for (const auto& [speed, core] : cores) order.push_back(core);
  (void)affinity, (void)root;
  return order;
}

}  // namespace mycelia::lite
