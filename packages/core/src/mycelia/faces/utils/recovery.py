"""Parts of the recovery of training on many devices. They need the services of an Ascend cluster."""

from __future__ import annotations

from mycelia.engine.base import errors


def _needs_cluster(subject: str) -> Exception:
    return errors.error(
        errors.MyceliaRuntimeError, subject, "this needs the services of an Ascend cluster",
        hint="checkpoints and Model.train continue a training on one machine",
    )  # fmt: skip


class ExitByRequest:
    """Ends training on all devices when one of them asks for it."""

    def exit_by_request(self, grad, init_value, exit_value):
        """Whether to end is agreed on by all devices: RuntimeError, there is only one."""
        raise _needs_cluster("ExitByRequest")


class RSCPluginHandle:
    """The connection to the resource scheduler of a cluster."""

    def check_enable(self) -> bool:
        """Whether there is a scheduler: no."""
        return False

    def register_callback(self, func_map: dict) -> None:
        """Functions that the scheduler calls: RuntimeError, there is none."""
        raise _needs_cluster("RSCPluginHandle")

    def start(self) -> None:
        """Connect: RuntimeError, there is no scheduler."""
        raise _needs_cluster("RSCPluginHandle")


class TFTCommValue:
    """Names of the stages of a recovery."""

    ARF, TRE, TTP, UCE, RSC = "ARF", "TRE", "TTP", "UCE", "RSC"
