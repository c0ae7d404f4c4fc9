// MindSpore Lite's converter as a class of C++. It runs the command `mycelia-lite convert`, which must be found in PATH: the converter is
// a program of the machine that builds, not a part of the runtime. Header only, C++17, POSIX.
#ifndef MYCELIA_LITE_CONVERTER_H_
#define MYCELIA_LITE_CONVERTER_H_

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "mycelia/lite/model.h"

extern "C" char** environ;

namespace mycelia {

namespace converter {

// The framework of the model that is converted.
enum FmkType : int {
  kFmkTypeTf = 0, kFmkTypeCaffe = 1, kFmkTypeOnnx = 2, kFmkTypeMs = 3, kFmkTypeTflite = 4, kFmkTypePytorch = 5, kFmkTypeMsLite = 7
};

}  // namespace converter

// A conversion with its options; what is not set is as in the source.
class Converter {
 public:
  // `weight_file`: of Caffe. Without an `output_file` the model is converted into memory.
  Converter(converter::FmkType fmk_type, std::string model_file, std::string output_file = "", std::string weight_file = "")
      : fmk_type_(fmk_type), model_file_(std::move(model_file)), output_file_(std::move(output_file)), weight_file_(std::move(weight_file)) {}

  void SetConfigFile(const std::string& config_file) { config_file_ = config_file; }
  std::string GetConfigFile() const { return config_file_; }
  // A section of a configuration file; without a configuration file alone.
  void SetConfigInfo(const std::string& section, const std::map<std::string, std::string>& config) { config_info_[section] = config; }
  std::map<std::string, std::map<std::string, std::string>> GetConfigInfo() const { return config_info_; }
  void SetWeightFp16(bool weight_fp16) { Set("fp16", weight_fp16 ? "on" : "off"); }
  bool GetWeightFp16() const { return Get("fp16") == "on"; }
  // Sizes by name, -1 for one that stays open.
  void SetInputShape(const std::map<std::string, std::vector<int64_t>>& input_shape) { input_shape_ = input_shape; }
  std::map<std::string, std::vector<int64_t>> GetInputShape() const { return input_shape_; }
  // NHWC or NCHW.
  void SetInputFormat(Format format) { Set("inputDataFormat", format == NHWC ? "NHWC" : format == NCHW ? "NCHW" : std::to_string(format)); }
  void SetOutputFormat(Format format) { Set("outputDataFormat", format == NHWC ? "NHWC" : format == NCHW ? "NCHW" : std::to_string(format)); }
  void SetInputDataType(DataType type) { Set("inputDataType", NameOf(type)); }
  void SetOutputDataType(DataType type) { Set("outputDataType", NameOf(type)); }
  void SetSaveType(ModelType type) { Set("saveType", type == kMindIR_Lite ? "MINDIR_LITE" : type == kMindIR ? "MINDIR" : std::to_string(type)); }
  void SetInfer(bool infer) { Set("infer", infer ? "true" : "false"); }
  bool GetInfer() const { return Get("infer") == "true"; }
  void SetTrainModel(bool train_model) { Set("trainModel", train_model ? "true" : "false"); }
  void SetNoFusion(bool no_fusion) { Set("optimize", no_fusion ? "none" : "general"); }
  bool GetNoFusion() const { return Get("optimize") == "none"; }
  void SetOptimizeTransformer(bool on) { Set("optimizeTransformer", on ? "true" : "false"); }
  void SetDevice(const std::string& device) { Set("device", device); }
  // Keys are hexadecimal digits.
  void SetEnableEncryption(bool encryption) { Set("encryption", encryption ? "true" : "false"); }
  void SetEncryptKey(const std::string& key) { Set("encryptKey", key); }
  void SetDecryptKey(const std::string& key) { Set("decryptKey", key); }
  void SetDecryptMode(const std::string& mode) { Set("decryptMode", mode); }
  // Compares the result with the source on random inputs before it is written.
  void SetCheck(bool check) { Set("check", check ? "true" : "false"); }

  // Writes `output_file`. Codes and reasons are those of `mycelia-lite convert`.
  Status Convert() {
    if (output_file_.empty()) return {kLiteParamInvalid, "the converter has no output file"};
    return Run(output_file_);
  }
  // The model in memory, for Model::Build, to be freed with free(); null, with the reason in `status`, after a failure.
  void* Convert(size_t* data_size, Status* status = nullptr) {
    Status ignored;
    Status& told = status ? *status : ignored;
    Scratch scratch;
    if (!(told = scratch.status)) return nullptr;
    Graph graph;
    const std::string file = scratch.Path("model.ms");
    told = Run(file);
    if (told) told = Serialization::Load(file, kMindIR_Lite, &graph);
    void* const made = told ? std::malloc(graph.bytes().size()) : nullptr;
    if (told && !made) told = {kLiteMemoryFailed, "no memory for the model"};
    if (!made) return nullptr;
    *data_size = graph.bytes().copy(static_cast<char*>(made), graph.bytes().size());
    return made;
  }

 private:
  // A folder of its own with the files of one call.
  struct Scratch {
    std::string folder;
    std::vector<std::string> files;
    Status status;
    Scratch() {
      std::error_code failed;
      folder = (std::filesystem::temp_directory_path(failed) / "mycelia-lite-XXXXXX").string();
      if (!mkdtemp(folder.data())) status = {kLiteError, "cannot make a folder like " + folder};
    }
    ~Scratch() {
      for (const std::string& file : files) unlink(file.c_str());
      rmdir(folder.c_str());
    }
    std::string Path(const std::string& name) { return files.push_back(folder + "/" + name), files.back(); }
  };

  void Set(const std::string& option, const std::string& value) { options_[option] = value; }
  std::string Get(const std::string& option) const {
    const auto found = options_.find(option);
    return found == options_.end() ? "" : found->second;
  }
  static std::string NameOf(DataType type) {
    switch (type) {
      case DataType::kNumberTypeFloat32: return "FLOAT";
      case DataType::kNumberTypeFloat16: return "FLOAT16";
      case DataType::kNumberTypeInt8: return "INT8";
      case DataType::kNumberTypeUInt8: return "UINT8";
      case DataType::kNumberTypeInt32: return "INT32";
      case DataType::kNumberTypeInt64: return "INT64";
      default: return std::to_string(static_cast<int>(type));  // which the command refuses
    }
  }

  Status Run(const std::string& output) {
    static const std::map<int, std::string> kFrameworks = {{0, "TF"}, {1, "CAFFE"}, {2, "ONNX"}, {3, "MINDIR"}, {4, "TFLITE"}, {5, "PYTORCH"}, {7, "MSLITE"}};
    const auto framework = kFrameworks.find(fmk_type_);
    if (framework == kFrameworks.end()) return {kLiteParamInvalid, "there is no framework " + std::to_string(fmk_type_)};
    std::vector<std::string> words = {"mycelia-lite", "convert", "--fmk=" + framework->second, "--modelFile=" + model_file_, "--outputFile=" + output};
    if (!weight_file_.empty()) words.push_back("--weightFile=" + weight_file_);
    for (const auto& [option, value] : options_) words.push_back("--" + option + "=" + value);
    std::string shapes;
    for (const auto& [name, sizes] : input_shape_) {
      shapes += (shapes.empty() ? "" : ";") + name + ":";
      for (size_t i = 0; i < sizes.size(); ++i) shapes += (i ? "," : "") + std::to_string(sizes[i]);
    }
    if (!shapes.empty()) words.push_back("--inputShape=" + shapes);
    Scratch scratch;
    if (!scratch.status) return scratch.status;
    std::string config = config_file_;
    if (!config_info_.empty()) {
      if (!config.empty()) return {kLiteParamInvalid, "the converter has a configuration file and sections beside it"};
      config = scratch.Path("config.ini");
      std::FILE* const file = std::fopen(config.c_str(), "wb");
      if (!file) return {kLiteError, "cannot write " + config};
      for (const auto& [section, keys] : config_info_) {
        std::fprintf(file, "[%s]\n", section.c_str());
        for (const auto& [key, value] : keys) std::fprintf(file, "%s=%s\n", key.c_str(), value.c_str());
      }
      if (std::fclose(file)) return {kLiteError, "cannot write " + config};
    }
    if (!config.empty()) words.push_back("--configFile=" + config);
    return Command(words);
  }

  // Runs the command. What it says last is its result: CONVERT RESULT FAILED:<code> <reason>
  static Status Command(std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int ends[2];
    if (pipe(ends)) return {kLiteError, "cannot make a pipe"};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string said;
    char block[4096];
    for (ssize_t n; !failed && (n = read(ends[0], block, sizeof(block))) != 0;) {
      if (n < 0 && errno != EINTR) break;
      if (n > 0) said.append(block, static_cast<size_t>(n));
    }
    close(ends[0]);
    if (failed) return {kLiteNotSupport, "the command mycelia-lite is not in PATH: install the package mycelia-lite"};
    int state = 0;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return {};
    const std::string mark = "CONVERT RESULT FAILED:";
    const size_t place = said.find(mark);
    while (!said.empty() && said.back() == '\n') said.pop_back();
    if (place == std::string::npos) return {kLiteError, "mycelia-lite convert failed: " + said};
    char* reason = nullptr;
    const long code = std::strtol(said.c_str() + place + mark.size(), &reason, 10);
    return {static_cast<StatusCode>(code), *reason ? reason + 1 : "no reason"};
  }

  converter::FmkType fmk_type_;
  std::string model_file_, output_file_, weight_file_, config_file_;
  std::map<std::string, std::string> options_;
  std::map<std::string, std::vector<int64_t>> input_shape_;
  std::map<std::string, std::map<std::string, std::string>> config_info_;
};

}  // namespace mycelia

#endif
