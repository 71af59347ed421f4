"""Every fault of a manifest is reported at its line, whatever the text."""

from pathlib import Path
from textwrap import dedent

import pytest

from paceline.apimachinery.yaml_positions import locate
from paceline.console.manifests.manifest_checks import MAX_BYTES, MAX_FAULTS, check

EXAMPLES = Path(__file__).parents[3] / "examples"

JOB = """\
apiVersion: batch.tensorstack.dev/v1beta1
kind: PyTorchTrainingJob
metadata:
  name: torch-mnist
spec:
  replicaSpecs:
    - type: worker
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: pytorch/pytorch:2.13.0
              command: [python]
              args: [train.py]
              resources:
                limits: {cpu: "4", memory: 8Gi, nvidia.com/gpu: 4}
              volumeMounts:
                - {name: data, mountPath: /mnt}
          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: tutorial
"""


def errors(text, **options):
    return [finding for finding in check(text, **options).findings if finding.severity == "error"]


def places(text, **options):
    return [(finding.span.line, finding.path) for finding in errors(text, **options)]


def marked(text, span):
    return text.split("\n")[span.line - 1][span.column - 1 : span.end_column - 1]


def mended(text, fix):
    lines = text.split("\n")
    line = lines[fix.span.line - 1]
    lines[fix.span.line - 1] = line[: fix.span.column - 1] + fix.text + line[fix.span.end_column - 1 :]
    return "\n".join(lines)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_example_has_a_fault(path):
    result = check(path.read_text(), namespace="default")

    assert [finding.message for finding in result.findings if "Flink" not in finding.message] == []
    assert all(checked.name for checked in result.objects)


def test_a_job_says_what_all_its_replicas_ask_for():
    (job,) = check(JOB).objects

    assert (job.kind, job.name, job.line, job.totals.replicas) == ("PyTorchTrainingJob", "torch-mnist", 1, 2)
    assert job.totals.requests == {"cpu": 8, "memory": 16 * 1024**3, "nvidia.com/gpu": 8}


def test_thousands_of_replicas_are_summed_without_creating_each():
    (job,) = check(JOB.replace("replicas: 2", "replicas: 4096")).objects

    assert job.totals.requests["cpu"] == 4 * 4096


@pytest.mark.parametrize(
    ("old", "new", "line", "path", "under"),
    [
        ("OnFailure", "OnFailur", 9, "spec.replicaSpecs[0].restartPolicy", "OnFailur"),
        ("replicas: 2", "replicas: two", 8, "spec.replicaSpecs[0].replicas", "two"),
        ("replicas: 2", "replicas: 0", 8, "spec.replicaSpecs[0].replicas", "0"),
        ("replicas: 2", "replica: 2", 8, "spec.replicaSpecs[0].replica", "replica"),
        ("command: [", "commands: [", 15, "spec.replicaSpecs[0].template.spec.containers[0].commands", "commands"),
        ("name: torch-mnist", "name: Torch_Mnist", 4, "metadata.name", "Torch_Mnist"),
        ("name: torch-mnist", "name:", 4, "metadata.name", "name"),
        (
            "nvidia.com/gpu: 4",
            "nvidia.com/gpu: 0.5",
            18,
            "spec.replicaSpecs[0].template.spec.containers[0].resources.limits.nvidia.com/gpu",
            "0.5",
        ),
        ("kind: PyTorchTrainingJob", "kind: PyTorchTraningJob", 2, "kind", "PyTorchTraningJob"),
        ("dev/v1beta1", "dev/v1", 1, "apiVersion", "batch.tensorstack.dev/v1"),
        (
            "- {name: data, mountPath",
            "- {name: dat, mountPath",
            20,
            "spec.replicaSpecs[0].template.spec.containers[0].volumeMounts[0].name",
            "dat",
        ),
    ],
)
def test_a_fault_is_at_its_line_and_underlines_what_is_wrong(old, new, line, path, under):
    text = JOB.replace(old, new, 1)

    finding = next(finding for finding in errors(text) if finding.path == path)

    assert finding.span.line == line
    assert marked(text, finding.span) == under


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("OnFailure", "OnFailur"),
        ("command: [", "commands: ["),
        ("volumeMounts:", "volumemounts:"),
        ("kind: PyTorchTrainingJob", "kind: PyTorchTraningJob"),
        ("dev/v1beta1", "dev/v1"),
        ("name: torch-mnist", "name: Torch-Mnist"),
        ("- {name: data, mountPath", "- {name: dat, mountPath"),
    ],
)
def test_a_fix_mends_the_fault(old, new):
    text = JOB.replace(old, new, 1)
    (finding,) = [finding for finding in errors(text) if finding.fix]

    assert errors(mended(text, finding.fix)) == []


def test_all_faults_are_reported_in_the_order_of_the_text():
    text = JOB.replace("torch-mnist", "Torch").replace("replicas: 2", "replicas: 0").replace("command:", "commands:")

    assert [line for line, _ in places(text)] == [4, 8, 15]


def test_a_missing_field_is_reported_at_its_parent():
    text = JOB.replace("      template:\n", "      templat:\n", 1)

    assert (6 + 4, "spec.replicaSpecs[0].templat") in places(text)
    assert any(path == "spec.replicaSpecs[0].template" for _, path in places(text))


def test_old_shapes_are_warnings():
    text = JOB.replace("spec:\n  replicaSpecs", "spec:\n  torchrunConfig: {enable: true}\n  replicaSpecs", 1)

    (warning,) = [finding for finding in check(text).findings if finding.severity == "warning"]

    assert warning.span.line == 6
    assert "is the old form of spec.torchrunConfig.enabled" in warning.message


def test_pods_that_would_be_refused_are_warnings_at_their_lines():
    text = JOB.replace(
        "              args: [train.py]\n", "              args: [train.py]\n              env: [{name: ''}]\n"
    )

    (warning,) = check(text).findings

    assert (warning.severity, warning.span.line) == ("warning", 17)
    assert warning.path == "spec.replicaSpecs[0].template.spec.containers[0].env[0].name"
    assert "pods would be refused" in warning.message


def test_an_empty_name_is_called_empty():
    (finding,) = errors(JOB.replace("name: torch-mnist", 'name: ""'))

    assert finding.message.startswith("name is empty; it must consist of")


def test_a_kind_that_cannot_run_says_so():
    text = (EXAMPLES / "03-kinds" / "beam.yaml").read_text()

    (warning,) = check(text).findings

    assert "Flink is not supported" in warning.message
    assert marked(text, warning.span) == "BeamJob"


def test_a_claim_that_does_not_exist_is_a_fault_only_where_the_claims_are_known():
    path = "spec.replicaSpecs[0].template.spec.volumes[0].persistentVolumeClaim.claimName"

    assert places(JOB, namespace="default") == []
    assert places(JOB, namespace="default", claims={"default": frozenset({"other"})}) == [(24, path)]
    assert places(JOB, namespace="default", claims={"default": frozenset({"tutorial"})}) == []


def test_a_claim_of_the_same_text_exists():
    claim = (EXAMPLES / "01-digits" / "claim.yaml").read_text().replace("digits", "tutorial")

    assert places(f"{claim}---\n{JOB}", namespace="default", claims={"default": frozenset()}) == []


def test_faults_of_a_later_document_and_of_a_list_are_at_their_lines():
    bad = JOB.replace("replicas: 2", "replicas: 0")
    listed = "apiVersion: v1\nkind: List\nitems:\n" + "".join(
        f"{'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(bad.splitlines())
    )

    assert places(f"{JOB}---\n{bad}") == [(24 + 1 + 8, "spec.replicaSpecs[0].replicas")]
    assert places(listed) == [(3 + 8, "spec.replicaSpecs[0].replicas")]


def test_built_in_kinds_are_checked_too():
    claim = (EXAMPLES / "01-digits" / "claim.yaml").read_text()

    assert places(claim.replace("storage: 1Gi", "storage: lots"))
    assert places(claim.replace("accessModes", "accessmodes"))
    assert places(claim.replace("ReadWriteMany", "ReadWriteSome"))


def test_a_kind_that_only_the_server_knows_has_no_fault():
    assert check("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\n").findings == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1, 2\nb: 3\n", 2),
        ("a: 1\n\tb: 2\n", 2),
        ("a: 1\na: 2\n", 2),
        ("a: *nothing\n", 1),
        ("a: !!python/object:os.system x\n", 1),
        ("a: \x07\n", 1),
        ("kind: [\n", 1),
        ("- 1\n- 2\n", 1),
        ("just words\n", 1),
    ],
)
def test_text_that_is_no_object_is_refused_at_its_line(text, line):
    (finding,) = errors(text)

    assert finding.span.line == line
    assert finding.message


def test_an_empty_text_has_neither_objects_nor_faults():
    assert check("") == check("# only a comment\n")
    assert check("").findings == ()


def test_a_bomb_of_aliases_is_refused_at_its_line():
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]

    (finding,) = errors("\n".join(lines))

    assert finding.span.line == 4
    assert "aliases" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\n" * (5 * 1024 * 1024 // 5),
        "text: " + "x" * 5 * 1024 * 1024,
        "名: 字\n" * (5 * 1024 * 1024 // 9),
    ],
)
def test_five_megabytes_are_refused_at_the_line_where_too_much_begins(text):
    (finding,) = errors(text)

    assert finding.reason == "RequestEntityTooLarge"
    assert finding.span.line == text.encode()[:MAX_BYTES].count(b"\n") + 1


def test_too_many_values_and_too_deep_nesting_are_refused_at_their_lines():
    (many,) = errors("a:\n" + "- 1\n" * 30_000)
    (deep,) = errors("a: 1\nb: " + "[" * 200 + "]" * 200)

    assert 19_000 < many.span.line < 21_000
    assert deep.span.line == 2


def test_a_flood_of_faults_is_counted_not_listed():
    fields = "".join(f"  field{number}: 1\n" for number in range(300))

    result = check(JOB + fields)

    assert len(result.findings) == MAX_FAULTS
    assert result.unlisted == 300 - MAX_FAULTS


def test_columns_count_as_browsers_do():
    text = dedent("""\
        a: {"😀": 1, b: two}
        """)

    assert marked_utf16(text, locate(text)[1]["a.b"].value) == "two"


def marked_utf16(text, span):
    units = text.split("\n")[span.line - 1].encode("utf-16-le")
    return units[2 * (span.column - 1) : 2 * (span.end_column - 1)].decode("utf-16-le")


def test_the_result_is_json_with_the_names_of_the_wire():
    result = check(JOB.replace("OnFailure", "OnFailur")).as_json()

    assert result["objects"][0]["apiVersion"] == "batch.tensorstack.dev/v1beta1"
    assert result["findings"][0]["fix"]["span"]["endColumn"] == 30
    assert result["findings"][0]["severity"] == "error"
