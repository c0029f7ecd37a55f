"""A seeded permutation of any size that is computed element by element."""

from __future__ import annotations

import hashlib

_ROUNDS = 6


class Permutation:
    """A bijection of ``range(size)`` onto itself, fixed by ``key``, in O(1) memory and time per element.

    A balanced Feistel network over the next even number of bits; what falls outside the range is sent through
    again, which takes under four turns on average.
    """

    def __init__(self, size: int, key: str) -> None:
        self.size = size
        self.key = key
        self._half_bits = max(1, ((size - 1).bit_length() + 1) // 2)
        self._mask = (1 << self._half_bits) - 1

    def __call__(self, position: int) -> int:
        """Return where ``position`` goes; IndexError outside ``range(size)``."""
        if not 0 <= position < self.size:
            raise IndexError(f"position {position} is outside a permutation of {self.size}")
        image = self._shuffled(position)
        while image >= self.size:
            image = self._shuffled(image)
        return image

    def _shuffled(self, value: int) -> int:
        left, right = value >> self._half_bits, value & self._mask
        for turn in range(_ROUNDS):
            left, right = right, left ^ self._scrambled(turn, right)
        return left << self._half_bits | right

    def _scrambled(self, turn: int, half: int) -> int:
        length = (self._half_bits + 7) // 8
        text = f"{self.key}/{turn}/{half:x}".encode()
        return int.from_bytes(hashlib.shake_256(text).digest(length), "big") & self._mask
