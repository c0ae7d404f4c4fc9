"""Random graphs, and the nodes that MindInsight makes of them, as a file for tests.

`python tools/oracle_insight_graphs.py COUNT FILE.json.gz`, by a Python that has MindInsight 2.3.1: a list of
`{graph: GraphProto in base64, normal, optimized}`, these with the nodes below each node, and what is found.
Graphs that MindInsight fails on are left out.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import sys

from mindinsight.datavisual.data_transform.graph import MSGraph
from mindinsight.datavisual.data_transform.graph.optimized_graph import OptimizedGraph
from mindinsight.datavisual.proto_files import mindinsight_anf_ir_pb2 as messages

SCOPES = ["", "Default", "Default/a", "Default/a/b", "Default/conv", "Gradients/Default/a",
          "Default/optimizer-Momentum", "Default/c/ReLU-x"]  # fmt: skip
TYPES = ["Conv2D", "ReLU", "Load", "MakeTuple", "TupleGetItem", "UpdateState", "Add"]
TEXTS = ["a", "conv", "op1", "default", "/", "p1", "re"]
TENSOR, TUPLE, INT64, FLOAT64, STRING = 14, 31, 5, 12, 13  # of DataType


def made(seed: int):
    pick = random.Random(seed)
    graph = messages.GraphProto(name="random")
    parameters = [f"p{i}.weight" for i in range(pick.randint(0, 14))]
    constants = [f"cst{i}" for i in range(pick.randint(0, 6))]
    for name in parameters:
        set_type(graph.parameters.add(name=name).type, pick)
    for name in constants:
        set_value(graph.const_vals.add(key=name).value, pick)
    types, scopes = TYPES[: pick.choice([2, 7])], SCOPES[: pick.choice([3, 8])]
    count = pick.randint(1, 60)
    for i in range(count):
        node = graph.node.add(name=str(i + 1), op_type=pick.choice(types), scope=pick.choice(scopes),
                              output_i=pick.choice([0, 0, 3]))  # fmt: skip
        named = pick.random()
        if named < 0.5:
            node.full_name = (f"{node.scope}/" if node.scope else "") + f"{node.op_type}-op{i + 1}"
        elif named < 0.53:
            node.full_name = "Default/TensorSummary[:Tensor]"
        if pick.random() < 0.2:
            node.instance_name = "opt_x"
        for _ in range(pick.randint(0, 4)):
            last = count if pick.random() < 0.1 else max(1, i)
            source = pick.choice([str(pick.randint(1, last)), *parameters, *constants[:1]])
            if source != node.name:
                node.input.add(name=source, type=pick.choice([0, 0, 0, 1]))
        if pick.random() < 0.9:
            set_type(node.output_type, pick)
        set_value(node.attribute.add(name="value").value, pick)
        if pick.random() < 0.1:
            node.attribute.add(name="input_is_dynamic_shape").value.bool_val = True
    return graph


def set_type(message, pick: random.Random) -> None:
    message.data_type = pick.choice([TENSOR, TENSOR, TENSOR, TUPLE, INT64])
    if message.data_type == TENSOR:
        message.tensor_type.elem_type = pick.choice([10, 11])
        for _ in range(pick.randint(0, 4)):
            message.tensor_type.shape.dim.add(size=pick.choice([-1, 4, 5]))
    elif message.data_type == TUPLE:
        for _ in range(2):
            set_type(message.sequence_type.elem_types.add(), pick)


def set_value(value, pick: random.Random) -> None:
    value.dtype = pick.choice([TENSOR, INT64, STRING, TUPLE])
    if value.dtype == TENSOR:
        value.tensor_val.dims.extend([2, 3])
        value.tensor_val.data_type = 11
        value.tensor_val.raw_data = b"\x00\xff'\"\n"
    elif value.dtype == INT64:
        value.int_val = pick.randint(-5, 5)
    elif value.dtype == STRING:
        value.str_val = "é\\" * pick.choice([3, 2000])
    else:
        for number in (pick.random(), float("nan"), float("-inf"), 1e16):
            part = value.values.add()
            part.dtype, part.double_val, part.float_val = FLOAT64, number, number


def told(kind, graph) -> dict:
    mine = messages.GraphProto()
    mine.CopyFrom(graph)
    found = kind()
    found.build_graph(mine)
    names = ["", *found._normal_node_map]
    searched = {text: found.get_nodes(found.search_nodes_by_pattern(text)) for text in TEXTS}
    return {"below": {name: found.list_node_by_scope(name) for name in names}, "searched": searched}


def main(count: int, path: str) -> None:
    kept, seed = [], 0
    while len(kept) < count:
        graph, seed = made(seed), seed + 1
        try:
            answers = {"normal": told(MSGraph, graph), "optimized": told(OptimizedGraph, graph)}
        except Exception as error:  # its faults are many
            print(f"seed {seed - 1}: {error!r}", file=sys.stderr)
            continue
        kept.append({"graph": base64.b64encode(graph.SerializeToString()).decode(), **answers})
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps(kept).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
