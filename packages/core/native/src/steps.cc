// The steps of a Program, and what else follows from its values and instructions.
#include <algorithm>

#include "program.h"

namespace mycelia {
namespace {

void find_outside(Body* body) {
  body->seen_outside.assign(body->types.size(), 0);
  for (int32_t v : body->outputs) body->seen_outside[v] = 1;
  for (const Instruction& ins : body->code) {
    if (ins.kind == kRunView) {
      for (int32_t v : ins.out) body->seen_outside[v] = 1;
    } else if (ins.kind != kRunKernel && ins.kind != kRunReference) {
      for (int32_t v : ins.in)
        if (v >= 0) body->seen_outside[v] = 1;
    }
  }
}

void find_work(Body* body) {
  for (Instruction& ins : body->code) {
    ins.work = 0;
    if (!ins.plan) continue;
    for (const Ints* values : {&ins.in, &ins.out})
      for (int32_t v : *values)
        if (v >= 0 && body->fixed[v]) ins.work += body->types[v].size;
  }
}

void find_contexts(Body* body) {
  body->contexts.clear();
  body->context_of.clear();
  body->kernels.clear();
  for (const Instruction& ins : body->code) {
    int32_t found = -1;
    if (ins.kind == kRunKernel) {
      const auto at = std::find(body->contexts.begin(), body->contexts.end(), ins.plan->context);
      found = static_cast<int32_t>(at - body->contexts.begin());
      if (at == body->contexts.end()) body->contexts.push_back(ins.plan->context);
    }
    body->context_of.push_back(found);
    body->kernels.push_back(ins.kind == kRunKernel ? ins.plan->fn : nullptr);
  }
}

void find_holders(Body* body) {
  body->holders.clear();
  body->in_arena.clear();
  for (size_t v = 0; v < body->types.size(); ++v) {
    if (body->offset[v] >= 0) body->in_arena.push_back(static_cast<int32_t>(v));
    else if (!body->constants[v] && (body->base[v] == static_cast<int32_t>(v) || body->seen_outside[v]))
      body->holders.push_back(static_cast<int32_t>(v));
  }
}

}  // namespace

void group_steps(Body* body) {
  std::vector<uint8_t> in_place(body->types.size(), 0);
  for (const Update& u : body->updates)
    if (u.in_place) in_place[u.value] = 1;
  body->steps.clear();
  auto group = body->task_groups.begin();
  int32_t apart = 0;  // before this instruction a step begins
  for (size_t i = 0; i < body->code.size(); ++i) {
    const Instruction& ins = body->code[i];
    const bool native = ins.kind == kRunKernel;
    const int32_t at = static_cast<int32_t>(i);
    const bool first = group != body->task_groups.end() && group->begin == at;
    if (!native || first || at == apart || !body->steps.back().native) {
      body->steps.push_back(Step{at, at, native, 0, {}, {}, {}});
      if (first) {
        body->steps.back().tasks = group->ends;
        apart = group->ends.back();
        ++group;
      }
    }
    Step& step = body->steps.back();
    step.end = static_cast<int32_t>(i) + 1;
    if (ins.plan) {
      step.work += ins.work;
      for (int32_t v : ins.out)
        if (body->offset[v] < 0 && !in_place[v]) step.fresh.push_back(v);
    }
    step.free.insert(step.free.end(), ins.free.begin(), ins.free.end());
  }
}

void derive(Body* body) {
  find_work(body);
  find_outside(body);
  group_steps(body);
  find_contexts(body);
  find_holders(body);
}

}  // namespace mycelia
