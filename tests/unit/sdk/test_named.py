"""Volumes by name: a half-made one does not stay, and no key is where people see it."""

import pytest

from paceline.errors import Invalid
from paceline.sdk.volumes import BucketOptions, Volumes


@pytest.fixture
def volumes(session):
    return Volumes(cluster=session.cluster, namespace="default")


def test_a_folder_whose_claim_is_refused_leaves_no_half_volume(stage, volumes, tmp_path):
    """Nobody would find it, and the next try would be told that it is there."""
    stage.refused.add("photos")

    with pytest.raises(Invalid):
        volumes.create_folder("photos", str(tmp_path))
    assert stage.objects == {}


BAD = {
    "keys in the address": ("s3://AKIA:very-secret@team/data", "", "--bucket"),
    "another scheme": ("ftp://team/data", "", "--bucket"),
    "no bucket": ("s3://", "", "--bucket"),
    "a password in the endpoint": ("s3://team/data", "https://me:very-secret@oss.example.org", "--endpoint"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_a_bucket_that_cannot_be_is_refused_and_no_key_is_shown(stage, volumes, case):
    url, endpoint, option = case

    with pytest.raises(Invalid) as caught:
        volumes.create_bucket("tfoss", BucketOptions(url=url, endpoint=endpoint))
    assert [fault.path for fault in caught.value.faults] == [option]
    assert "very-secret" not in str(caught.value)
    assert stage.objects == {}


def test_a_key_is_not_in_what_a_bucket_prints():
    assert "very-secret" not in repr(BucketOptions(url="s3://team", key_id="AKIA", key_secret="very-secret"))


@pytest.mark.parametrize("size", ["lots", "0", "-1Gi", ""])
def test_what_is_no_size_is_refused_with_an_example(stage, volumes, size):
    with pytest.raises(Invalid, match="such as 10Gi"):
        volumes.create_claim("new", size)
    assert stage.objects == {}
