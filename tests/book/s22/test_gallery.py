import pytest

from relparallel.book.s22 import gallery
from relparallel.topology import bcube


def test_a_gallery_has_titles_notes_and_no_empty_frames():
    fig = gallery({name: bcube(2, 1) for name in "abc"}, {"b": "a note"}, columns=2, height=1.5)
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["a", "b", "c", ""]
    assert [text.get_text() for text in fig.axes[1].texts] == ["a note"]
    assert not any(ax.axison for ax in fig.axes)
    assert fig.get_size_inches().tolist() == [7.0, 3.0]


def test_a_note_without_a_picture_is_refused():
    with pytest.raises(ValueError, match="notes must be for pictures, got c"):
        gallery({"a": bcube(2, 1)}, {"c": "none"})
