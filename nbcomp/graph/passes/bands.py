"""Convolutions one after another by bands of lines: what lies between them stays in the cache.

A convolution with a kernel per channel does little with each element of an image, and is found
between convolutions of single places that widen the image before it and narrow it after (Sandler et
al., MobileNetV2, arXiv:1801.04381).  A band of lines of the result needs a band of each image
before it, and a few lines more where windows reach beyond: these are computed again.

Knows groups and how large images are; not how loops are made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from nbcomp.graph.ir import Node
from nbcomp.graph.op import ChannelsLast, Piecewise
from nbcomp.graph.passes.drafts import Drafts
from nbcomp.graph.passes.materialise import storage
from nbcomp.machine import host
from nbcomp.record import Remark, remark
from nbcomp.sizes import is_open

LARGE = 256 << 10  # bytes of an image that would leave a core's caches before it is read
KEPT = 640 << 10  # bytes of all bands of images between convolutions
MANY = 4  # bands that are enough for all cores
AGAIN = 0.35  # of the lines of an image, at most, are computed more than once


@dataclass(frozen=True)
class Chain:
    """Convolutions, each of the image that is made from the one before; these images may have
    margins."""

    links: tuple[Node, ...]

    @property
    def images(self) -> tuple[Node, ...]:
        """The images between them."""
        return tuple(link.inputs[0] for link in self.links[1:])

    def lines(self, count: int) -> list[int]:
        """Lines of each link's image that a band of so many lines of the result needs."""
        found = [count]
        for link in reversed(self.links[1:]):
            op = link.op
            assert isinstance(op, ChannelsLast)
            reach = (op.kernel[0] - 1) * op.dilation[0] + 1
            found.append((found[-1] - 1) * op.stride[0] + reach)
        return found[::-1]

    def kept(self, count: int) -> int:
        """Bytes of the bands of images for so many lines of the result."""
        pairs = zip(self.images, self.lines(count), strict=False)
        return sum(n * math.prod(i.shape[2:]) * i.type.dtype.itemsize for i, n in pairs)

    def again(self, count: int) -> float:
        """How much of the first image is computed more than once, relative to its size."""
        return self.bands(count) * self.lines(count)[0] / self.images[0].shape[1] - 1

    def bands(self, count: int) -> int:
        """Bands of so many lines."""
        return -(-self.links[-1].shape[1] // count)

    @cached_property
    def height(self) -> int:
        """Lines of a band of the result, so that its images are kept, least is computed again and
        the cores have as many bands; 0 if there is no such number."""
        lines = self.links[-1].shape[1]
        fitting = [n for n in range(1, lines // MANY + 1) if self.kept(n) <= KEPT]
        fitting = [n for n in fitting if self.again(n) <= AGAIN]
        return min(fitting, key=self.cost, default=0)

    def cost(self, count: int) -> tuple[float, int]:
        """What computing again and cores without work add to the time of all bands."""
        cores = host().cores
        idle = -(-self.bands(count) // cores) * cores * count / self.links[-1].shape[1]
        return (1 + self.again(count) / 2) * idle, count


def chains(drafts: Drafts) -> Iterator[Chain]:
    """What may be computed by bands: as many links as there are."""
    for node in drafts.graph.nodes:
        if not _per_channel(node):
            continue
        before, after = _maker(node, drafts), _reader(node, drafts)
        for links in ((before, node, after), (node, after), (before, node)):
            chain = Chain(tuple(link for link in links if link is not None))
            if None not in links and chain.height:
                yield chain
                break


def _convolution(node: Node) -> ChannelsLast | None:
    """The operator of a convolution of floats over lines of places."""
    op = node.op
    if not isinstance(op, ChannelsLast) or op.narrow or len(node.inputs) != 2:
        return None
    return op if len(op.kernel) > 1 and not is_open(node.shape[1:]) else None


def _per_channel(node: Node) -> bool:
    """Whether a node is a convolution with a kernel for each channel."""
    op = _convolution(node)
    return op is not None and op.groups > 1


def _single(node: Node) -> bool:
    """Whether a node is a convolution of single places, of all there are."""
    op = _convolution(node)
    if op is None or op.groups > 1 or any(map(any, op.margins)):
        return False
    return set(op.kernel + op.stride) == {1}


def _maker(node: Node, drafts: Drafts) -> Node | None:
    """The convolution of single places whose result a convolution reads and nobody else."""
    image = node.inputs[0]
    draft = drafts.group.get(image)
    framed = image.op.name == "pad_constant" or not isinstance(image.op, Piecewise)
    if draft is None or not framed or not _alone(image, node, drafts):
        return None
    return next(filter(_single, draft.nodes), None)


def _reader(node: Node, drafts: Drafts) -> Node | None:
    """The convolution of single places that reads what a convolution makes, and nobody else."""
    image = max(drafts.group[node].nodes, key=drafts.bit.__getitem__)
    reader = next(drafts.real_users(image), None)
    if reader is None or not _single(reader) or reader.inputs[0] is not image:
        return None
    return reader if _alone(image, reader, drafts) else None


def _alone(image: Node, reader: Node, drafts: Drafts) -> bool:
    """Whether all that a group makes is a large image that one node reads."""
    if math.prod(image.shape[1:]) * image.type.dtype.itemsize < LARGE:
        return False
    mask = drafts.group[image].mask
    results = set(map(storage, drafts.graph.outputs))
    for n in drafts.group[image].nodes:
        users = list(drafts.real_users(n))
        inside = all(drafts.bit[u] & mask for u in users)
        if n in results or not (users == [reader] if n is image else inside):
            return False
    return True


def applied(chain: Chain) -> None:
    """Say that convolutions are one kernel."""
    height = chain.height
    names = " and ".join(n.title for n in chain.links)
    sizes = ", ".join(str(i.type) for i in chain.images)
    reason = (
        f"{names} are one kernel: what lies between them ({sizes}) is computed in bands, for"
        f" {height} lines of the result at a time, and never stored whole"
    )
    remark("applied", "bands", reason, chain.links[-1].location)


def refused(chain: Chain) -> Remark:
    """That convolutions stay apart."""
    names = " and ".join(n.title for n in chain.links)
    reason = f"{names} are separate: a step between them needs all of the first"
    return Remark("missed", "bands", reason, chain.links[-1].location)
