"""Use over time as text, and as other sources tell it."""

from paceline.presentation.usage_series import UsageSeries, chart, columns_of, prometheus_query, sparkline, total


def series(times, cpu):
    return UsageSeries(times=tuple(times), mean={"cpu": tuple(cpu)}, most={}, requests={}, limits={})


def test_a_job_uses_what_its_containers_use_together():
    assert total([series([5, 10], [1.0, 2.0]), series([10, 15], [3.0, None])], "cpu") == {5: 1.0, 10: 5.0}
    assert total([series([5], [1.0])], "gpu") == {}


def test_columns_are_means_and_one_missing_is_filled():
    columns = columns_of({5: 1.0, 10: 3.0, 25: 4.0, 60: 8.0}, start=0, end=60, width=6)

    assert columns == [1.0, 3.0, 4.0, None, None, 8.0]
    assert columns_of({5: 1.0, 25: 4.0}, start=0, end=30, width=3) == [1.0, 1.0, 4.0]
    assert columns_of({-5: 1.0, 90: 1.0}, start=0, end=60, width=2) == [None, None]


def test_a_line_shows_the_largest_as_a_full_block_and_nothing_as_a_blank():
    assert sparkline([0.0, 4.0, None, 8.0], 8.0) == "▁▄ █"
    assert sparkline([0.0, None], 0.0) == "▁ "


def test_a_chart_has_its_highest_row_first():
    assert chart([8.0, 4.0, None, 0.0], 8.0, 2) == ["█   ", "██ ▁"]


def test_names_of_pods_are_no_patterns():
    query = prometheus_query("memory", "team", ["a.b", "c"], 15)

    assert r'namespace="team",pod=~"a\\.b|c"' in query
    assert "[120s]" in prometheus_query("cpu", "team", ["a"], 15)
    assert "[600s]" in prometheus_query("cpu", "team", ["a"], 600)
