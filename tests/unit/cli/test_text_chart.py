"""A chart as text shows where the line goes."""

from paceline.cli.output.text_chart import text_chart


def test_a_line_that_falls_begins_at_the_top_and_ends_at_the_bottom():
    *rows, axis = text_chart([0, 50, 100], [1.0, 0.5, 0.0], width=10, height=4)
    assert rows[0].split() == ["1", "┤" + rows[0].partition("┤")[2]]
    assert ord(rows[0].partition("┤")[2][0]) > 0x2800
    assert ord(rows[-1][-1]) > 0x2800
    assert axis.split() == ["0", "100"]


def test_values_that_are_no_numbers_are_left_out_and_one_point_is_no_chart():
    assert text_chart([1, 2], [1.0, float("nan")]) == []
    assert text_chart([], []) == []
    assert len(text_chart([1, 2], [3.0, 3.0], height=5)) == 6
