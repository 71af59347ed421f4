"""Creating jobs in the browser: form and YAML are one thing, faults are shown where they are, nothing is lost."""

import json
import re

import pytest
from playwright.sync_api import expect

CONTAINER = "spec.replicaSpecs[0].template.spec.containers[0]"
WORDS = {
    "en": {"create": "Create", "more": "More ways to create", "paused": "Create paused", "start": "Start from"},
    "zh": {"create": "创建", "more": "更多创建方式", "paused": "创建并暂停", "start": "起点"},
}
KINDS = (
    *("PyTorchTrainingJob", "TensorFlowTrainingJob", "XGBoostTrainingJob", "MPIJob", "GenericJob", "ColossalAIJob"),
    *("DeepSpeedJob", "BeamJob", "Notebook", "TensorBoard", "PersistentVolumeClaim"),
)
# The manifest of T9k's first tutorial, with its old name of the kind and its comments.
TUTORIAL = """\
apiVersion: batch.tensorstack.dev/v1beta1
kind: TensorFlowJob
metadata:
  name: mnist
spec:
  tensorboardSpec:               # TensorBoard服务器规约
    trainingLogFilesets:
      - t9k://pvc/mnist/log      # 日志文件路径
    image: tensorflow/tensorflow:2.14.0
  replicaSpecs:
    - type: worker               # 工作器
      replicas: 4                # 工作器数量
      restartPolicy: ExitCode
      template:
        spec:
          containers:
            - image: tensorflow/tensorflow:2.14.0
              workingDir: /mnt
              name: tensorflow
              command:
                - sh
                - '-c'
                - >-
                  python /mnt/keras_mnist_trainingjob.py --log_dir /mnt/log
                  --no_cuda
              env: []
              resources:
                limits:          # 限制量
                  cpu: '4'       # CPU
                  memory: 2Gi    # 内存
              volumeMounts:
                - name: data
                  mountPath: /mnt
          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: mnist
"""


class Creator:
    """The create page, in either language."""

    def __init__(self, site, url):
        self.words = WORDS[site.look.language]
        self.page = site.open(url)
        expect(self.page.locator("[data-page=create] .pc-editor")).to_be_visible()

    def field(self, path):
        return self.page.locator(f'[data-path="{path}"]').first.locator("input, textarea").first

    def group(self, name):
        return self.page.locator(f"[data-group={name}]")

    @property
    def text(self):
        lines = self.page.locator(".cm-content").evaluate(
            "node => [...node.querySelectorAll('.cm-line')].map(line => line.textContent)"
        )
        return "\n".join(lines)

    @property
    def foot(self):
        return self.page.locator(".pc-foot")

    def paste(self, text):
        """Replace everything in the editor, as Ctrl-A and Ctrl-V do."""
        editor = self.page.locator(".cm-content")
        editor.click()
        self.page.keyboard.press("Control+a")
        editor.evaluate(
            """(node, text) => {
                const clipboardData = new DataTransfer();
                clipboardData.setData("text/plain", text);
                node.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true}));
            }""",
            text,
        )

    def wait_for(self, *, faults, warnings=0):
        selector = f'.pc-foot[data-checking=false][data-faults="{faults}"][data-warnings="{warnings}"]'
        expect(self.page.locator(selector)).to_be_visible()

    def create(self, *, paused=False):
        if not paused:
            self.page.get_by_role("button", name=self.words["create"], exact=True).click()
            return
        self.page.get_by_role("button", name=self.words["more"]).click()
        self.page.get_by_role("menuitem", name=self.words["paused"]).click()


def object_of(cluster, kind, name):
    ran = cluster.kubectl("get", kind, name, "-o", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def make_claim(cluster, name):
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
    assert cluster.kubectl("apply", "-f", "-", stdin=json.dumps(claim)).code == 0


def test_a_claim_is_created_by_its_form(site):
    creator = Creator(site, "create/PersistentVolumeClaim")

    creator.field("metadata.name").fill("tutorial")
    creator.field("spec.resources.requests.storage").fill("2Gi")
    creator.wait_for(faults=0)
    creator.create()
    creator.page.wait_for_url("**/jobs")

    claim = object_of(site.cluster, "pvc", "tutorial")
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_a_parallel_training_is_created_by_its_form_alone(site):
    """The steps of T9k's tutorial, and the shared memory that its form lacks."""
    make_claim(site.cluster, "data")
    creator = Creator(site, "create/PyTorchTrainingJob")
    creator.field("metadata.name").fill("torch-mnist-trainingjob")
    creator.group("torchrun").get_by_role("switch").click()
    creator.field("spec.torchrunConfig.maxRestarts").fill("3")
    creator.field("spec.torchrunConfig.procPerNode").fill("4")
    creator.field(f"{CONTAINER}.image").fill("t9kpublic/pytorch-1.13.0:sdk-0.5.2")
    creator.field(f"{CONTAINER}.args").fill(
        'torch_mnist_trainingjob.py "--save_path=model_state_dict.pt" "--log_dir=log"'
    )
    creator.field(f"{CONTAINER}.resources.limits.cpu").fill("8")
    creator.field(f"{CONTAINER}.resources.limits.memory").fill("16Gi")
    creator.field(f"{CONTAINER}.resources.requests.cpu").fill("4")
    creator.field(f"{CONTAINER}.resources.requests.memory").fill("8Gi")
    creator.field(f"{CONTAINER}.workingDir").fill("/t9k/mnt/ddp")
    volumes = creator.page.locator('[data-path="spec.replicaSpecs[0].template.spec.volumes"]')
    volumes.locator("button").last.click()
    volumes.locator(".pf-volume input").nth(1).fill("data")
    volumes.locator(".pf-volume input").nth(3).fill("/t9k/mnt")
    creator.page.locator(".pf-memory").get_by_role("switch").click()
    creator.wait_for(faults=0)

    expect(creator.foot).to_contain_text("4 CPU, 8 Gi")
    creator.create(paused=True)
    creator.page.wait_for_url("**/jobs/default/PyTorchTrainingJob/torch-mnist-trainingjob/**")

    spec = object_of(site.cluster, "pytorchtrainingjobs", "torch-mnist-trainingjob")["spec"]
    pod = spec["replicaSpecs"][0]["template"]["spec"]
    assert spec["torchrunConfig"] == {"enabled": True, "maxRestarts": 3, "procPerNode": "4"}
    assert spec["runMode"] == {"pause": {"enabled": True}}
    assert pod["containers"][0]["args"] == [
        "torch_mnist_trainingjob.py",
        "--save_path=model_state_dict.pt",
        "--log_dir=log",
    ]
    assert pod["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
    ]
    assert [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]] == ["/t9k/mnt", "/dev/shm"]


def test_a_pasted_manifest_is_created_and_its_old_name_is_a_warning(site):
    make_claim(site.cluster, "mnist")
    creator = Creator(site, "create/TensorFlow")

    creator.paste(TUTORIAL)
    creator.wait_for(faults=0, warnings=1)
    expect(creator.field("spec.replicaSpecs[0].replicas")).to_have_value("4")
    creator.field("spec.replicaSpecs[0].replicas").fill("2")

    assert creator.text == TUTORIAL.replace("replicas: 4 ", "replicas: 2 ")
    creator.create(paused=True)
    creator.page.wait_for_url("**/jobs/default/TensorFlowJob/mnist/**")
    assert object_of(site.cluster, "tensorflowjobs", "mnist")["spec"]["replicaSpecs"][0]["replicas"] == 2


def test_a_typing_error_is_underlined_marked_in_the_form_and_mended_by_a_click(site):
    creator = Creator(site, "create/PyTorchTrainingJob")
    creator.paste(creator.text.replace('name: ""', "name: typo").replace("command:", "commands:"))
    creator.wait_for(faults=1)

    expect(creator.page.locator(".cm-lintRange-error")).to_have_text("commands")
    expect(creator.page.locator("[data-panel=replica-worker] .pf-badge")).to_be_visible()
    creator.page.locator(".pc-count").click()
    creator.page.locator(".pc-findings .ant-btn").click()

    creator.wait_for(faults=0)
    assert "\n              command:\n" in creator.text


def test_text_that_is_not_yaml_dims_the_form_which_keeps_its_state(site):
    creator = Creator(site, "create/PyTorchTrainingJob")
    creator.field("metadata.name").fill("kept")
    creator.paste("spec: [\n")

    expect(creator.page.locator(".pc-frozen")).to_be_visible()
    expect(creator.field("metadata.name")).to_have_value("kept")
    expect(creator.page.get_by_role("button", name=creator.words["create"], exact=True)).to_be_disabled()


def test_unsaved_text_survives_a_reload(site):
    creator = Creator(site, "create/GenericJob")
    creator.field("metadata.name").fill("unsaved")
    creator.wait_for(faults=0)

    creator.page.reload()

    expect(creator.field("metadata.name")).to_have_value("unsaved")
    expect(creator.page.locator(".cm-content")).to_contain_text("name: unsaved")


def test_unsaved_text_survives_a_new_login(site):
    creator = Creator(site, "create/GenericJob")
    creator.field("metadata.name").fill("patient")
    creator.wait_for(faults=0)

    site.context.clear_cookies()
    creator.create()
    expect(creator.page.locator(".pl-login")).to_be_visible()
    creator.page.goto(site.login_url("create/GenericJob"))

    expect(creator.field("metadata.name")).to_have_value("patient")


def test_a_taken_name_is_refused_in_place_and_another_is_one_click_away(site):
    creator = Creator(site, "create/GenericJob?example=02-hello/job")
    creator.create(paused=True)
    creator.page.wait_for_url("**/jobs/default/GenericJob/hello/**")

    again = Creator(site, "create/GenericJob?example=02-hello/job")
    again.create(paused=True)
    expect(again.page.get_by_role("alert")).to_contain_text("hello")
    assert "name: hello" in again.text
    again.page.get_by_role("alert").get_by_role("button").click()
    expect(again.field("metadata.name")).to_have_value("hello-2")
    again.create(paused=True)
    again.page.wait_for_url("**/jobs/default/GenericJob/hello-2/**")


def test_a_copy_of_a_job_has_its_spec_under_another_name(site):
    make_claim(site.cluster, "mnist")
    job = TUTORIAL.replace("name: mnist\nspec", "name: origin\nspec")
    assert (
        site.cluster.kubectl("apply", "-f", "-", stdin=job.replace("spec:\n", "spec:\n  suspend: true\n", 1)).code == 0
    )
    creator = Creator(site, "create/TensorFlowJob?from=default/TensorFlowJob/origin")

    expect(creator.field("metadata.name")).to_have_value("origin-2")
    assert "suspend" not in creator.text
    assert "uid:" not in creator.text


def test_a_file_is_opened(site, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(TUTORIAL.replace("name: mnist\nspec", "name: opened\nspec"))
    creator = Creator(site, "create/PyTorchTrainingJob")

    creator.page.locator("input[type=file]").set_input_files(file)

    expect(creator.field("metadata.name")).to_have_value("opened")


def test_an_example_brings_its_claim_and_both_are_created(site):
    creator = Creator(site, "create/PyTorchTrainingJob?example=08-parameter-server/job")
    creator.wait_for(faults=0)
    assert re.search("(?m)^kind: PersistentVolumeClaim$", creator.text)

    creator.create(paused=True)
    creator.page.wait_for_url("**/jobs/default/PyTorchTrainingJob/parameter-server/**")

    assert object_of(site.cluster, "pvc", "parameter-server")["metadata"]["name"] == "parameter-server"


@pytest.mark.parametrize("kind", KINDS)
def test_the_empty_form_of_every_kind_lacks_only_names(site, kind):
    creator = Creator(site, f"create/{kind}")
    creator.field("metadata.name").fill("empty")

    expect(creator.page.locator(".pc-foot[data-checking=false]")).to_be_visible()
    creator.page.locator("[data-panel=allFields] button").first.click()

    # A TensorBoard needs the name of a claim, which has no default.
    expect(creator.page.locator(".pc-foot")).to_have_attribute("data-faults", "1" if kind == "TensorBoard" else "0")
    expect(creator.page.locator(".pf-tree [data-path]").first).to_be_visible()


def test_a_field_that_the_form_does_not_show_is_found_and_set_in_the_tree(site):
    creator = Creator(site, "create/PyTorchTrainingJob")
    creator.field("metadata.name").fill("tree")
    creator.page.locator("[data-panel=allFields] button").first.click()
    creator.page.locator(".pf-tree input").first.fill("priorityClassName")
    creator.field("spec.replicaSpecs[0].template.spec.priorityClassName").fill("high")

    creator.wait_for(faults=0)
    assert "          priorityClassName: high\n" in creator.text


def test_a_phone_shows_form_and_yaml_as_tabs(site):
    creator = Creator(site, "create/GenericJob")
    creator.page.set_viewport_size({"width": 390, "height": 844})

    expect(creator.page.locator(".pc-form")).to_be_visible()
    expect(creator.page.locator(".pc-editor")).to_be_hidden()
    creator.page.locator(".ant-segmented-item").nth(1).click()

    expect(creator.page.locator(".pc-editor")).to_be_visible()
    assert creator.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
