# SPDX-License-Identifier: Apache-2.0
"""Networks by name, with the names and shapes of published weights."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import _core
from .nn import Native


def make(name: str, **options: Any) -> Native:
    """A network by its name: make("resnet50", classes=10). Raises NotFound, which lists the names.
    """
    return Native(_core.zoo_new(name, **options))


def open(path: str | os.PathLike[str]) -> Native:  # noqa: A001
    """The network that the config.json of a published model describes. Load its weights with
    load(path)."""
    return Native(_core.zoo_open(str(path)))


def save(net: Native, source: str | os.PathLike[str], folder: str | os.PathLike[str]) -> None:
    """Write a network of open(source) as a folder of a published model, which transformers reads;
    with adapters, as a folder of peft."""
    _core.published_write(net, str(source), str(folder))


def open_adapters(net: Native, folder: str | os.PathLike[str]) -> None:
    """Give a network the adapters in a folder of peft."""
    _core.lora_open(net, str(folder))


def __getattr__(name: str) -> Callable[..., Native]:
    """resnet(depth=50), gpt(vocabulary=50257), ...: functions named zoo_... of the library."""
    function = getattr(_core, "zoo_" + name, None)
    if function is None:
        raise AttributeError(f"the zoo has no {name}")

    def network(*args: Any, **options: Any) -> Native:
        return Native(function(*args, **options))

    network.__name__ = name
    network.__doc__ = function.__doc__
    network.__text_signature__ = function.__text_signature__  # type: ignore[attr-defined]
    return network
