"""Conditions for `Watchpoint`, classes with the names and arguments of MindSpore's offline debugger."""

from __future__ import annotations

from typing import Any

from mycelia.debug.conditions import condition


class ConditionBase:
    """A condition with its parameters.  Errors: ValueError, TypeError for values out of their ranges."""

    condition_id = ""

    def __init__(self, **values: Any) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}
        condition(self.condition_id).values(self.values)

    @property
    def name(self) -> str:
        """The name of the watch condition."""
        return self.condition_id

    @property
    def param_dict(self) -> dict[str, Any]:
        """The parameters as they were set."""
        return dict(self.values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.values.items())})"


class WatchCondition(ConditionBase):
    """Any watch condition, by its name and parameters: ``WatchCondition("dead_relu", steps=3)``."""

    def __init__(self, name: str, **values: Any) -> None:
        self.condition_id = name
        super().__init__(**values)

    def __repr__(self) -> str:
        parts = [repr(self.condition_id), *(f"{k}={v!r}" for k, v in self.values.items())]
        return f"{type(self).__name__}({', '.join(parts)})"


class TensorTooLargeCondition(ConditionBase):
    """Mean of absolutes, maximum, minimum or mean above a bound."""

    condition_id = "tensor_too_large"

    def __init__(self, abs_mean_gt=None, max_gt=None, min_gt=None, mean_gt=None) -> None:
        super().__init__(abs_mean_gt=abs_mean_gt, max_gt=max_gt, min_gt=min_gt, mean_gt=mean_gt)


class TensorTooSmallCondition(ConditionBase):
    """Mean of absolutes, maximum, minimum or mean below a bound."""

    condition_id = "tensor_too_small"

    def __init__(self, abs_mean_lt=None, max_lt=None, min_lt=None, mean_lt=None) -> None:
        super().__init__(abs_mean_lt=abs_mean_lt, max_lt=max_lt, min_lt=min_lt, mean_lt=mean_lt)


class TensorRangeCondition(ConditionBase):
    """The share of elements within a range, in percent, or the distance of the extremes."""

    condition_id = "tensor_range"

    def __init__(
        self,
        range_start_inclusive=None,
        range_end_inclusive=None,
        range_percentage_lt=None,
        range_percentage_gt=None,
        max_min_lt=None,
        max_min_gt=None,
    ) -> None:
        super().__init__(
            range_start_inclusive=range_start_inclusive,
            range_end_inclusive=range_end_inclusive,
            range_percentage_lt=range_percentage_lt,
            range_percentage_gt=range_percentage_gt,
            max_min_lt=max_min_lt,
            max_min_gt=max_min_gt,
        )


class TensorOverflowCondition(ConditionBase):
    """NaN or infinities."""

    condition_id = "tensor_overflow"


class OperatorOverflowCondition(ConditionBase):
    """A result that does not fit into its type: NaN or infinities, a float16 that saturates, an integer that
    wraps around, a division by zero. All but the first need the operator's inputs.
    """

    condition_id = "operator_overflow"


class TensorAllZeroCondition(ConditionBase):
    """A share of zeros, in percent."""

    condition_id = "tensor_all_zero"

    def __init__(self, zero_percentage_ge) -> None:
        super().__init__(zero_percentage_ge=zero_percentage_ge)


class TensorUnchangedCondition(ConditionBase):
    """All elements as in the step before, within ``atol + rtol * abs(before)``."""

    condition_id = "weight_not_changed"

    def __init__(self, rtol=1e-5, atol=1e-8) -> None:
        super().__init__(rtol=rtol, atol=atol)


class TensorChangeBelowThresholdCondition(ConditionBase):
    """A mean change below a share of the mean absolute value of the step before."""

    condition_id = "weight_change_too_small"

    def __init__(self, abs_mean_update_ratio_lt, epsilon=1e-9) -> None:
        super().__init__(abs_mean_update_ratio_lt=abs_mean_update_ratio_lt, epsilon=epsilon)


class TensorChangeAboveThresholdCondition(ConditionBase):
    """A mean change above such a share."""

    condition_id = "weight_change_too_large"

    def __init__(self, abs_mean_update_ratio_gt, epsilon=1e-9) -> None:
        super().__init__(abs_mean_update_ratio_gt=abs_mean_update_ratio_gt, epsilon=epsilon)
