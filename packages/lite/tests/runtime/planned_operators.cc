// The runtime with two operators of a test: Abs asks for a number through views that it makes before, Neg always for another one.
#include <cstdio>
#include <cstring>

#include "mycelia/lite/c_api.h"
#include "operators/find.h"
#include "plan.h"
#include "schema.h"

namespace mycelia::lite {

namespace {

// y = x[first], where x is a vector of int64 whose first element names a place.
void asks_a_view(Planner& p) {
  const int x = p.input(0);
  const int row = p.view(x, {1, p.type(x).shape[0]});
  const int column = p.view(row, {p.type(x).shape[0], 1});
  const std::vector<int64_t> numbers = p.integers(column, "the numbers");
  if (!p.ok()) return;
  const int64_t found = numbers[numbers[0]];
  p.set_output(0, p.made_constant(Type{MYC_I64, {}}, &found));
}

void asks_for_ever(Planner& p) {
  static int64_t asked = 0;
  const int64_t other = ++asked;
  const int sum = p.emit("add", {p.input(0), p.made_constant(Type{MYC_I64, {}}, &other)}, p.type(p.input(0)));
  p.set_output(0, p.integers(sum, "the numbers").empty() ? 0 : sum);
}

}  // namespace

Operator find_operator(uint8_t kind) {
  return kind == schema::kOp_Abs ? asks_a_view : kind == schema::kOp_Neg ? asks_for_ever : nullptr;
}

}  // namespace mycelia::lite

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    MSModelHandle model = MSModelCreate();
    MSTensorHandleArray outputs;
    const int64_t numbers[] = {2, 5, 7};
    if (MSModelBuildFromFile(model, argv[i], kMSModelTypeMindIRLite, NULL) != kMSStatusSuccess) return 1;
    std::memcpy(MSTensorGetMutableData(MSModelGetInputs(model).handle_list[0]), numbers, sizeof(numbers));
    if (MSModelPredict(model, MSModelGetInputs(model), &outputs, NULL, NULL) != kMSStatusSuccess) std::printf("%s\n", MSGetLastError());
    else std::printf("%lld\n", static_cast<long long>(*static_cast<const int64_t*>(MSTensorGetData(outputs.handle_list[0]))));
    MSModelDestroy(&model);
  }
}
