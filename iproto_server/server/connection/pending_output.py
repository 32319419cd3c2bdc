"""Responses to a client, held until the rows that they depend on are in the log."""

from __future__ import annotations

from collections.abc import Callable

from iproto_server.native import twin


@twin
class Output:
    """Frames that are sent in one piece, in the order in which they were added.

    Attributes:
        size: how many bytes they are.
    """

    __slots__ = ("_frames", "_logged", "_pushed", "size")

    def __init__(self) -> None:
        self.size = 0
        self._frames: list[bytes] = []
        # The places of those that rest on rows that are not written, and of those that answer no request.
        self._logged: list[int] = []
        self._pushed: list[int] = []

    def add(self, response: bytes, is_logged: bool) -> None:
        """Append a response.

        Parameters:
            response: the whole frame.
            is_logged: whether it rests on rows that are not in the log yet.
        """
        if is_logged:
            self._logged.append(len(self._frames))
        self._frames.append(response)
        self.size += len(response)

    def push(self, frame: bytes) -> None:
        """Append a frame that answers no request; it rests on no rows."""
        self._pushed.append(len(self._frames))
        self.add(frame, False)

    @property
    def has_logged(self) -> bool:
        """Whether a response rests on rows that are not in the log yet."""
        return bool(self._logged)

    @property
    def has_pushed(self) -> bool:
        """Whether a frame was pushed."""
        return bool(self._pushed)

    def take(self) -> bytes:
        """Return all frames, joined; nothing is left."""
        frames = self.hand_over()._frames
        return frames[0] if len(frames) == 1 else b"".join(frames)

    def take_pushed(self) -> bytes:
        """Return the frames that were pushed, joined; the others are left.

        A message that waits with others could come after the answer to its request.
        """
        pushed, rest = self._new(), self._new()
        places, logged = set(self._pushed), set(self._logged)
        for place, frame in enumerate(self._frames):
            (pushed if place in places else rest).add(frame, place in logged)
        self._take_over(rest)
        return pushed.take()

    def hand_over(self) -> Output:
        """Return all frames in another output; nothing is left."""
        output = self._new()
        output._take_over(self)
        self._take_over(self._new())
        return output

    def refuse(self, refusal: Callable[[bytes], bytes]) -> None:
        """Replace the responses that rest on rows which could not be written.

        Parameters:
            refusal: makes what is sent instead of a response. What is added meanwhile comes behind.
        """
        frames, refused = self.hand_over(), self._new()
        pushed, logged = set(frames._pushed), set(frames._logged)
        kept = frames
        try:
            for place, frame in enumerate(frames._frames):
                if place in pushed:
                    refused.push(frame)
                else:
                    refused.add(refusal(frame) if place in logged else frame, False)
            kept = refused
        finally:
            kept._extend(self)
            self._take_over(kept)

    def _new(self) -> Output:
        """An empty one of the same kind: the name `Output` may be that of the compiled twin."""
        return type(self)()

    def _extend(self, other: Output) -> None:
        count = len(self._frames)
        self._logged += [count + place for place in other._logged]
        self._pushed += [count + place for place in other._pushed]
        self._frames += other._frames
        self.size += other.size

    def _take_over(self, other: Output) -> None:
        self.size = other.size
        self._frames, self._logged, self._pushed = other._frames, other._logged, other._pushed
