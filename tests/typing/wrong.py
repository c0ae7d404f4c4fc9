"""What a type checker must find: each line with a mark at its end, with the rule that it names."""

import mycelia as ms
from mycelia import nn, ops

x = ms.Tensor([1.0])
nn.Dense(3, 4, bias=True)  # reportCallIssue
ops.relu(x, inplaced=True)  # reportCallIssue
ops.expand_dims(x, axes=0)  # reportCallIssue
ops.gelu(x, "exactly")  # reportArgumentType
ops.softmax(x, axis="last")  # reportArgumentType
x.reshap(2)  # reportAttributeAccessIssue
x.sum(axes=0)  # reportCallIssue
nn.Dens(3, 4)  # reportAttributeAccessIssue
ms.mint.optim.Adm([x])  # reportAttributeAccessIssue
ms.Tensr([1])  # reportAttributeAccessIssue
ops.Conv2D(6, 5, strides=1)  # reportCallIssue
