#include "training.h"

#include <algorithm>
#include <cstring>

namespace mycelia::lite {

namespace {

bool same(const Type& a, const Type& b) { return a.dtype == b.dtype && a.shape == b.shape; }

bool is_number(const Type& type) { return type.dtype == MYC_F32 && element_count(type.shape) == 1; }

// Elements [O, I, h, w] as [O, h, w, I].
void turn(const uint8_t* from, const Type& type, char* to) {
  const int64_t item = item_bytes(type.dtype), inputs = type.shape[1], places = type.shape[2] * type.shape[3];
  for (int64_t o = 0; o < type.shape[0]; ++o)
    for (int64_t place = 0; place < places; ++place)
      for (int64_t i = 0; i < inputs; ++i, to += item) std::memcpy(to, from + ((o * inputs + i) * places + place) * item, static_cast<size_t>(item));
}

class Learner : public Training {
 public:
  Learner(Session& step, const Options& options);
  Status set_trains(bool trains) override;
  bool trains() const override { return trains_; }
  Session& active() override { return trains_ ? step_ : *forward_; }
  Status run(Observer* observer, NodeTimes* times) override;
  const std::vector<std::shared_ptr<Border>>& weights() const override { return weights_; }
  std::vector<size_t> variables_of(std::initializer_list<FileState::Role> roles) const override;
  Status set_variables(const std::vector<const Border*>& given) override;
  Status set_rate(float rate) override;
  Status rate(float* rate) const override;
  Status set_virtual_batch(int count, float rate, float momentum) override;
  Status gradients(std::vector<Border*>* found) override;
  Status apply(const std::vector<const Border*>& gradients) override;
  Status write(bool answers, std::string* bytes) const override;
  Status save(bool answers, const std::string& path) const override;

 private:
  Status open(int graph, std::unique_ptr<Session>* session) const;
  Status open_halves();
  // The inputs of `session` are those of the step by name.
  Status share_inputs(Session* session) const;
  Status run_halves(Observer* observer, NodeTimes* times);
  Status optimize(const std::vector<const uint8_t*>& gradients);
  size_t gradients_before() const { return step_.outputs().size(); }  // outputs of the first half that are no gradients
  Status set_numbers(FileState::Role role, float number);

  Session& step_;
  const Options options_;
  bool trains_ = false;
  std::unique_ptr<Session> forward_, first_, second_;  // the last two: the halves of a step; null until they are needed
  std::vector<std::shared_ptr<Border>> weights_;  // by variable
  int small_steps_ = 1, done_ = 0;  // of a virtual batch
  float rate_before_ = 0, momentum_before_ = 0;
  std::vector<Memory> sums_;
  bool keeps_gradients_ = false;
};

Learner::Learner(Session& step, const Options& options) : step_(step), options_(options) {
  const ModelFile& file = step.source()->file;
  Variables& variables = step.variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    auto weight = std::make_shared<Border>();
    weight->name = std::string(file.tensors[file.states[i].tensor].name);
    weight->type = variables[i].type;
    weight->data = variables[i].now.data();
    weight->of_model = true;
    weights_.push_back(std::move(weight));
  }
  trains_ = file.training.forward < 0;
}

Status Learner::open(int graph, std::unique_ptr<Session>* session) const {
  if (*session) return {};
  auto made = std::make_unique<Session>(step_, graph);
  if (Status status = made->open(step_.source(), options_); !status) return status;
  *session = std::move(made);
  return {};
}

Status Learner::set_trains(bool trains) {
  const int forward = step_.source()->file.training.forward;
  if (!trains && forward < 0) return {kNotSupported, "the model was converted without what it answers: it can be trained alone"};
  if (!trains)
    if (Status status = open(forward, &forward_); !status) return status;
  trains_ = trains;
  return {};
}

Status Learner::share_inputs(Session* session) const {
  std::vector<Border>& own = session->inputs();
  std::vector<const Border*> of(own.size());
  std::vector<std::vector<int64_t>> shapes;
  bool resized = !session->ready();
  for (size_t i = 0; i < own.size(); ++i) {
    for (const Border& input : step_.inputs())
      if (input.name == own[i].name) of[i] = &input;
    if (!of[i]) return {kGraphInvalid, message({"the model file is damaged: a step has no input '", own[i].name, "'"})};
    if (of[i]->type.dtype != own[i].type.dtype) return {kGraphInvalid, message({"the model file is damaged: input '", own[i].name, "' has two types"})};
    resized = resized || of[i]->type.shape != own[i].type.shape;
    shapes.push_back(of[i]->type.shape);
  }
  if (resized)
    if (Status status = session->resize(shapes); !status) return status;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].data == of[i]->data) continue;
    own[i].data = of[i]->data;
    session->rebind();
  }
  return {};
}

Status Learner::run(Observer* observer, NodeTimes* times) {
  if (!trains_) {
    if (Status status = set_trains(false); !status) return status;
    if (Status status = share_inputs(forward_.get()); !status) return status;
    return forward_->predict(observer, times);
  }
  if (small_steps_ > 1 || keeps_gradients_) return run_halves(observer, times);
  return step_.predict(observer, times);
}

// ---- variables

std::vector<size_t> Learner::variables_of(std::initializer_list<FileState::Role> roles) const {
  const std::vector<FileState>& states = step_.source()->file.states;
  std::vector<size_t> found;
  for (size_t i = 0; i < states.size(); ++i)
    if (std::find(roles.begin(), roles.end(), states[i].role) != roles.end()) found.push_back(i);
  return found;
}

Status Learner::set_variables(const std::vector<const Border*>& given) {
  std::vector<Border*> of;
  for (const Border* tensor : given) {
    const auto found = std::find_if(weights_.begin(), weights_.end(), [&](const auto& weight) { return weight->name == tensor->name; });
    if (found == weights_.end()) return {kParameterInvalid, message({"the model has no variable '", tensor->name, "'"})};
    if (!same((*found)->type, tensor->type))
      return {kParameterInvalid, message({"variable '", tensor->name, "' must be ", text_of((*found)->type), ", but is ", text_of(tensor->type)})};
    if (!tensor->made || !tensor->data) return {kParameterInvalid, message({"the tensor for variable '", tensor->name, "' has no elements"})};
    of.push_back(found->get());
  }
  for (size_t i = 0; i < given.size(); ++i) std::memmove(of[i]->data, given[i]->data, bytes_of(of[i]->type));
  return {};
}

Status Learner::set_numbers(FileState::Role role, float number) {
  for (const size_t i : variables_of({role})) {
    if (!is_number(weights_[i]->type)) return {kGraphInvalid, message({"the model file is damaged: '", weights_[i]->name, "' is no number"})};
    std::memcpy(weights_[i]->data, &number, sizeof(number));
  }
  return {};
}

Status Learner::set_rate(float rate) {
  if (!(rate >= 0) || rate > 3e38f) return {kParameterInvalid, "the learning rate must be a number from 0 on"};
  if (variables_of({FileState::kRate}).empty()) return {kNotSupported, "the learning rate follows a schedule of the model: it cannot be set"};
  return set_numbers(FileState::kRate, rate);
}

Status Learner::rate(float* rate) const {
  const std::vector<size_t> rates = variables_of({FileState::kRate});
  if (rates.empty() || !is_number(weights_[rates[0]]->type)) return {kNotSupported, "the learning rate follows a schedule of the model"};
  std::memcpy(rate, weights_[rates[0]]->data, sizeof(*rate));
  return {};
}

// ---- the halves of a step

Status Learner::open_halves() {
  const FileTraining& training = step_.source()->file.training;
  if (training.gradients < 0) return {kNotSupported, "the model was converted as a whole step: its gradients and its optimizer cannot be told apart"};
  if (Status status = open(training.gradients, &first_); !status) return status;
  return open(training.update, &second_);
}

Status Learner::set_virtual_batch(int count, float rate, float momentum) {
  if (count < 1) return {kParameterInvalid, message({"virtual_batch_multiplier is ", count, ", it must be 1 or more"})};
  if (done_) return {kParameterInvalid, message({done_, " of ", small_steps_, " small steps are done: the virtual batch is changed between two of them"})};
  if (count > 1)
    if (Status status = open_halves(); !status) return status;
  const std::vector<size_t> momenta = variables_of({FileState::kMomentum});
  if (momentum >= 0 && momenta.empty()) return {kNotSupported, "the optimizer has no momentum that could be set"};
  if (small_steps_ > 1) {  // as it was before
    if (Status status = set_rate(rate_before_); !status) return status;
    if (Status status = set_numbers(FileState::kMomentum, momentum_before_); !status) return status;
    small_steps_ = 1;
    sums_.clear();
  }
  if (count == 1) return {};
  if (Status status = this->rate(&rate_before_); !status) return status;
  for (const size_t i : momenta)
    if (!is_number(weights_[i]->type)) return {kGraphInvalid, message({"the model file is damaged: '", weights_[i]->name, "' is no number"})};
  if (!momenta.empty()) std::memcpy(&momentum_before_, weights_[momenta[0]]->data, sizeof(float));
  if (Status status = set_rate(rate < 0 ? rate_before_ / static_cast<float>(count) : rate); !status) return status;
  if (momentum >= 0)
    if (Status status = set_numbers(FileState::kMomentum, momentum); !status) return status;
  small_steps_ = count;
  return {};
}

Status Learner::gradients(std::vector<Border*>* found) {
  if (Status status = open_halves(); !status) return status;
  keeps_gradients_ = true;
  for (size_t i = gradients_before(); i < first_->outputs().size(); ++i) found->push_back(&first_->outputs()[i]);
  return {};
}

Status Learner::optimize(const std::vector<const uint8_t*>& gradients) {
  std::vector<Border>& inputs = second_->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].data == gradients[i]) continue;
    inputs[i].data = const_cast<uint8_t*>(gradients[i]);
    second_->rebind();
  }
  return second_->predict();
}

Status Learner::run_halves(Observer* observer, NodeTimes* times) {
  if (Status status = share_inputs(first_.get()); !status) return status;
  if (Status status = first_->predict(observer, times); !status) return status;
  std::vector<Border>& outputs = first_->outputs();
  const size_t before = gradients_before();
  if (outputs.size() - before != second_->inputs().size()) return {kGraphInvalid, "the model file is damaged: the halves of a step have other gradients"};
  for (size_t i = 0; i < before; ++i) {  // the losses
    Border& own = step_.outputs()[i];
    if (!same(own.type, outputs[i].type)) return {kGraphInvalid, "the model file is damaged: the halves of a step have other losses"};
    std::memcpy(own.data, outputs[i].data, bytes_of(own.type));
    own.made = true;
  }
  std::vector<const uint8_t*> gradients;
  for (size_t i = before; i < outputs.size(); ++i) {
    if (!same(outputs[i].type, second_->inputs()[i - before].type) || outputs[i].type.dtype != MYC_F32)
      return {kGraphInvalid, "the model file is damaged: the halves of a step have other gradients"};
    gradients.push_back(outputs[i].data);
  }
  if (small_steps_ == 1) return optimize(gradients);
  sums_.resize(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    const size_t bytes = bytes_of(outputs[before + i].type);
    if (!sums_[i].data()) sums_[i] = Memory(bytes);
    if (!sums_[i].data()) return no_memory();
    if (!done_) {
      std::memcpy(sums_[i].data(), gradients[i], bytes);
    } else {
      float* const sum = reinterpret_cast<float*>(sums_[i].data());
      const float* const more = reinterpret_cast<const float*>(gradients[i]);
      for (size_t n = 0; n < bytes / sizeof(float); ++n) sum[n] += more[n];
    }
    gradients[i] = sums_[i].data();
  }
  if (++done_ < small_steps_) return {};
  done_ = 0;
  return optimize(gradients);
}

Status Learner::apply(const std::vector<const Border*>& gradients) {
  if (Status status = open_halves(); !status) return status;
  std::vector<const uint8_t*> data;
  for (const Border& wanted : second_->inputs()) {
    const auto found = std::find_if(gradients.begin(), gradients.end(), [&](const Border* given) { return given->name == wanted.name; });
    if (found == gradients.end()) return {kParameterInvalid, message({"there is no gradient '", wanted.name, "'"})};
    if (!same((*found)->type, wanted.type) || !(*found)->made || !(*found)->data)
      return {kParameterInvalid, message({"gradient '", wanted.name, "' must be ", text_of(wanted.type), " with elements, but is ", text_of((*found)->type)})};
    data.push_back((*found)->data);
  }
  if (gradients.size() != data.size()) return {kParameterInvalid, message({gradients.size(), " gradients were given, the optimizer takes ", data.size()})};
  return optimize(data);
}

// ---- files

Status Learner::write(bool answers, std::string* bytes) const {
  const Source& source = *step_.source();
  if (source.sealed) return {kNotSupported, "a model that was encrypted is not written, since it would be readable"};
  if (!answers && done_) return {kNotSupported, message({done_, " of ", small_steps_, " small steps are done: the model is saved between two virtual batches"})};
  const std::vector<FileState>& states = source.file.states;
  if (answers) {
    const FileTraining& training = source.file.training;
    if (training.answers.empty()) return {kNotSupported, "the model was converted without what it answers: there is nothing to write for inference"};
    size_t taken = 0;
    for (const FileTraining::Hole& hole : training.holes) {
      const size_t next = hole.at - bytes->size();
      bytes->append(training.answers.substr(taken, next));
      taken += next;
      const Border& weight = *weights_[hole.variable];
      const size_t begin = bytes->size(), count = bytes_of(weight.type);
      bytes->append(reinterpret_cast<const char*>(weight.data), count);
      if (hole.last) turn(weight.data, weight.type, bytes->data() + begin);
    }
    bytes->append(training.answers.substr(taken));
    return {};
  }
  const char* const begin = reinterpret_cast<const char*>(source.bytes.data());
  bytes->assign(begin, source.bytes.size());
  for (size_t i = 0; i < states.size(); ++i) {
    const char* const first = states[i].first.data();
    if (first < begin || first + states[i].first.size() > begin + source.bytes.size())
      return {kNotSupported, "an obfuscated model is not written: train it before it is obfuscated"};
    std::memcpy(bytes->data() + (first - begin), weights_[i]->data, states[i].first.size());
  }
  return {};
}

Status Learner::save(bool answers, const std::string& path) const {
  std::string bytes;
  if (Status status = write(answers, &bytes); !status) return status;
  return write_whole(path, bytes);
}

}  // namespace

std::unique_ptr<Training> Training::of(Session& step, const Options& options) {
  if (!step.source()->file.training.there) return nullptr;
  return std::make_unique<Learner>(step, options);
}

}  // namespace mycelia::lite
