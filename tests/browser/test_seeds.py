"""The three tutorials that this project began with, done in the browser: from the first click to the last.

They are Chinese, and so are the words that these tests click. What the tutorials write in a notebook lies on the claim.
"""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from paceline.testing.embedded import embedded
from tests.browser.conftest import Look
from tests.browser.editor import paste
from tests.e2e.support.frameworks import environment, filled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

EXAMPLES = Path(__file__).parents[2] / "examples"
DIGITS = EXAMPLES / "01-digits" / "train.py"
TENSORFLOW = EXAMPLES / "05-tensorflow"
# Frameworks read thousands of modules in every process, on whatever machine this is.
TRAINED = 400_000
GOOD_ACCURACY = 0.9
# Ant Design puts a space between the two characters of a button.
CREATE = re.compile("^创 ?建$")
DELETE = re.compile("^删 ?除$")

PARALLEL_TRAINING = """\
apiVersion: batch.tensorstack.dev/v1beta1
kind: PyTorchTrainingJob
metadata:
  name: torch-mnist-trainingjob
spec:
  tensorboardSpec:
    trainingLogFilesets:
      - t9k://pvc/parallel/log/events
    image: tensorboard:test
  replicaSpecs:
    - type: worker
      replicas: 4
      restartPolicy: ExitCode
      template:
        spec:
          securityContext:
            runAsUser: 1000
          containers:
            - name: pytorch
              image: pytorch/pytorch:2.13.0
              workingDir: /mnt
              command: [python, torch_mnist_trainingjob.py, --data-dir=log, --epochs=6]
              resources:
                limits: {cpu: 2, memory: 1536Mi}
                requests: {cpu: 100m, memory: 512Mi}
              volumeMounts:
                - {name: data, mountPath: /mnt}
          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: parallel
"""


@pytest.fixture(scope="module")
def cluster():
    images = {"tensorflow/*": "tensorflow", "pytorch/*": "pytorch", "tensorboard": "tensorboard"}
    with embedded(
        *(word for image, name in images.items() for word in ("--image", f"{image}={environment(name)}"))
    ) as it:
        yield it


@pytest.fixture
def look():
    return Look(language="zh", theme="dark")


def test_000_a_distributed_training_with_tensorflow(site):
    page = site.open()
    create_job(page, "TensorFlow")
    text = (TENSORFLOW / "mirrored.yaml").read_text().replace("TensorFlowTrainingJob", "TensorFlowJob")
    paste(page, text.replace("--no_cuda", "--no_cuda --wait_for /mnt/go"))
    create_missing_claim(page, "mnist")
    folder = filled(site.cluster, "mnist", TENSORFLOW / "mirrored.py")
    create(page)

    watch_four_workers(page, "mnist")
    expect(page.get_by_role("log")).to_contain_text("Epoch 7/8", timeout=TRAINED)
    read_curve(page, "epoch_loss")
    (folder / "go").touch()
    open_job(page, "mnist")
    wait_for_success(page)
    accuracy = read_result(page, r"worker 0 of 4: accuracy ([\d.]+)")

    assert float(accuracy) > GOOD_ACCURACY
    assert (folder / "saved_model" / "saved_model.pb").is_file()
    delete_job(page, "mnist")


def test_001_a_parallel_training_with_pytorch(site):
    page = site.open()
    create_job(page, "PyTorch")
    paste(page, PARALLEL_TRAINING)
    create_missing_claim(page, "parallel")
    folder = filled(site.cluster, "parallel")
    shutil.copy(DIGITS, folder / "torch_mnist_trainingjob.py")
    create(page)

    watch_four_workers(page, "torch-mnist-trainingjob")
    open_job(page, "torch-mnist-trainingjob")
    wait_for_success(page)
    read_curve(page, "loss")
    open_job(page, "torch-mnist-trainingjob")
    accuracy = read_result(page, r"accuracy ([\d.]+)  model log/model.pt")

    assert float(accuracy) > GOOD_ACCURACY
    assert (folder / "log" / "model.pt").is_file()
    delete_job(page, "torch-mnist-trainingjob")


def test_002_a_data_parallel_training_by_the_form_alone(site):
    page = site.open()
    create_job(page, "PyTorch")
    fill_torchrun_form(page)
    create_missing_claim(page, "tutorial")
    folder = filled(site.cluster, "tutorial", DIGITS)
    create(page)

    open_job(page, "torch-mnist-trainingjob")
    page.get_by_role("tab", name="副本").click()
    page.get_by_role("row").filter(has_text="worker-0").get_by_role("link", name="日志").click()
    expect(page.get_by_role("log")).to_contain_text("epoch 2", timeout=TRAINED)
    open_job(page, "torch-mnist-trainingjob")
    wait_for_success(page)
    create_tensorboard(page, "tutorial", "log/events")
    see_curve(page, "loss")
    open_job(page, "torch-mnist-trainingjob")
    accuracy = read_result(page, r"accuracy ([\d.]+)  model log/model.pt")

    assert float(accuracy) > GOOD_ACCURACY
    assert (folder / "log" / "model.pt").is_file()
    delete_job(page, "torch-mnist-trainingjob")


def fill_torchrun_form(page):
    """What the tutorial types into which field, with the shared memory that its own form lacks, and without GPUs."""
    container = "spec.replicaSpecs[0].template.spec.containers[0]"
    page.locator("[data-group=torchrun]").get_by_role("switch").click()
    for path, text in {
        "metadata.name": "torch-mnist-trainingjob",
        "spec.torchrunConfig.maxRestarts": "3",
        "spec.torchrunConfig.procPerNode": "2",
        f"{container}.image": "pytorch/pytorch:2.13.0",
        f"{container}.args": 'train.py "--data-dir=log" "--epochs=6" "--backend=gloo"',
        f"{container}.resources.limits.cpu": "2",
        f"{container}.resources.limits.memory": "3Gi",
        f"{container}.resources.requests.cpu": "200m",
        f"{container}.resources.requests.memory": "1Gi",
        f"{container}.workingDir": "/t9k/mnt",
    }.items():
        page.locator(f'[data-path="{path}"]').first.locator("input, textarea").first.fill(text)
    volumes = page.locator('[data-path="spec.replicaSpecs[0].template.spec.volumes"]')
    volumes.locator("button").last.click()
    volumes.locator(".pf-volume input").nth(1).fill("tutorial")
    volumes.locator(".pf-volume input").nth(3).fill("/t9k/mnt")
    page.locator(".pf-memory").get_by_role("switch").click()


def create_tensorboard(page, claim, folder):
    go_to(page, "TensorBoard")
    page.get_by_role("button", name="创建 TensorBoard").click()
    page.locator('[data-path="metadata.name"] input').fill("curves")
    logs = page.locator(".pf-row")
    logs.locator("input").first.fill(claim)
    logs.locator("input").nth(1).fill(folder)
    page.locator('[data-path="spec.image"] input').fill("tensorboard:test")
    expect(page.locator(".pc-foot")).to_have_attribute("data-faults", "0")
    page.get_by_role("button", name=CREATE).click()
    expect(page.locator("[data-page=create]")).to_have_count(0)
    go_to(page, "TensorBoard")
    page.locator("[data-name=curves]").get_by_role("link").first.click()


def create(page):
    page.get_by_role("button", name=CREATE).click()
    expect(page.locator("[data-page=job]")).to_be_visible()


def go_to(page, name):
    page.get_by_role("navigation").get_by_role("link", name=name).click()


def create_job(page, framework):
    go_to(page, "作业")
    page.get_by_role("button", name="创建作业").click()
    page.get_by_role("menuitem", name=framework).click()
    expect(page.locator("[data-page=create]")).to_be_visible()


def create_missing_claim(page, name):
    """The check names the claim that the job needs and the project lacks."""
    page.get_by_role("button", name="显示错误").click()
    page.get_by_role("button", name="创建此存储卷…").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("名称")).to_have_value(name)
    dialog.get_by_role("button", name="创建存储卷").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".pc-foot")).to_have_attribute("data-faults", "0")


def open_job(page, name):
    go_to(page, "作业")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator("[data-page=job]").get_by_role("heading", name=name)).to_be_visible()


def watch_four_workers(page, name):
    open_job(page, name)
    page.get_by_role("tab", name="副本").click()
    rows = page.get_by_role("row").filter(has_text=re.compile(r"worker-\d"))
    expect(rows).to_have_count(4)
    expect(rows.locator("[data-phase=Running]")).to_have_count(4, timeout=TRAINED)
    rows.first.get_by_role("link", name="日志").click()


def wait_for_success(page):
    expect(page.locator(".pl-job-heading [data-phase]")).to_have_attribute("data-phase", "Succeeded", timeout=TRAINED)
    expect(page.locator(".pl-job-heading")).to_contain_text("成功")


def read_result(page, pattern):
    """Return what the log says in the end."""
    page.get_by_role("tab", name="日志").click()
    line = page.locator(".log-row").filter(has_text=re.compile(pattern))
    expect(line).to_be_visible()
    return re.search(pattern, line.inner_text())[1]


def read_curve(page, tag):
    page.get_by_role("button", name="TensorBoard").click()
    see_curve(page, tag)


def see_curve(page, tag):
    page.wait_for_selector('[data-app-state="open"]', timeout=TRAINED)
    board = page.frame_locator("iframe.pl-app-frame")
    expect(board.get_by_text(tag, exact=True).first).to_be_visible(timeout=TRAINED)


def delete_job(page, name):
    open_job(page, name)
    page.get_by_role("button", name="更多操作").click()
    page.get_by_role("menuitem", name="删除").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("文件会保留")
    dialog.get_by_role("button", name=DELETE).click()
    go_to(page, "作业")
    expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
