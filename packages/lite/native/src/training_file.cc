// What a file tells of a model that learns: subgraphs that are wholes of their own, and the pattern of a file for inference.
#include <cstring>

#include "kernels.h"
#include "model_file.h"

namespace mycelia::lite {

Status read_training(const FileNode& node, ModelFile* file) {
  ask_for_part("training");
  FileTraining& training = file->training;
  if (training.there) return broken(std::string("node 'Training'") + " stands there twice");
  training.there = true;
  for (auto& [name, graph] : {std::pair<const char*, int*>("forward", &training.forward), {"gradients", &training.gradients}, {"update", &training.update}})
    *graph = static_cast<int>(attribute_number(node, name, kMostGraphs));
  const Span<uint8_t> answers = attribute_of(node, "answers"), holes = attribute_of(node, "holes");
  training.answers = {reinterpret_cast<const char*>(answers.data), answers.size};
  if (holes.size % 24) return broken(std::string("node 'Training'") + ": places come in threes");
  for (uint32_t i = 0; i < holes.size; i += 24) {
    int64_t three[3];
    std::memcpy(three, holes.data + i, 24);
    if (three[0] < 0 || three[1] < 0 || three[2] < 0 || three[2] > 1) return broken(std::string("node 'Training'") + " has places out of range");
    training.holes.push_back({static_cast<size_t>(three[0]), static_cast<size_t>(three[1]), three[2] == 1});
  }
  return {};
}

Status check_training(const ModelFile& file) {
  const FileTraining& training = file.training;
  const auto known = [&](int graph) { return graph < static_cast<int>(file.graphs.size()) && graph != 0; };
  if (!known(training.forward) || !known(training.gradients) || !known(training.update)) return broken("a training has no such subgraphs");
  if ((training.gradients < 0) != (training.update < 0)) return broken("a training has one half of a step");
  size_t filled = 0, last = 0;
  for (const FileTraining::Hole& hole : training.holes) {
    if (hole.variable >= file.states.size() || hole.at < last || hole.at - last > training.answers.size()) return broken("a model for inference has places out of range");
    const size_t bytes = file.states[hole.variable].first.size();
    if (hole.last && file.tensors[file.states[hole.variable].tensor].shape.size() != 4) return broken("a variable that is no image is to be turned");
    filled += hole.at - last;
    last = hole.at + bytes;
  }
  if (filled > training.answers.size()) return broken("a model for inference has more places than bytes");
  return {};
}

}  // namespace mycelia::lite
