"""Declaring a model whose parts run in processes of their own."""

from __future__ import annotations

from mycelia_serving.servable import arguments
from mycelia_serving.servable.declaration import ModelDeclaration, RankLayout, current
from mycelia_serving.servable.model import Model, add_model


def declare_servable(
    rank_size: int,
    stage_size: int,
    with_batch_dim: bool = True,
    without_batch_dim_inputs: int | list[int] | tuple[int, ...] | None = None,
    enable_pipeline_infer: bool = False,
) -> Model:
    """Declares the one model of a servable that agents compute, one per rank, in stages of equal size.

    enable_pipeline_infer: as many batches as there are stages may be on their way.
    Errors: RuntimeError.
    """
    declaration = current("distributed.declare_servable")
    arguments.check_int("rank_size", rank_size, 1)
    arguments.check_int("stage_size", stage_size, 1)
    arguments.check_bool("with_batch_dim", with_batch_dim)
    arguments.check_bool("enable_pipeline_infer", enable_pipeline_infer)
    if rank_size % stage_size:
        raise RuntimeError(f"The rank_size {rank_size} should be a multiple of the stage_size {stage_size}")
    if declaration.models:
        raise RuntimeError("A distributed model is the only one of its servable")
    unbatched: tuple[int, ...] = ()
    if without_batch_dim_inputs is not None:
        unbatched = arguments.check_ints("without_batch_dim_inputs", without_batch_dim_inputs, 0)
    declared = ModelDeclaration(
        key=declaration.name,
        files=(),
        format="distributed",
        with_batch_dim=with_batch_dim,
        unbatched=unbatched if with_batch_dim else (),
        context=None,
        config_file=None,
        allow_reshape=False,
        max_batch_delay_ms=None,
        ranks=RankLayout(rank_size, stage_size, enable_pipeline_infer),
    )
    return add_model(declaration, declared)
