"""The alerts, the dashboard and the manifests of deploy/ against what workers serve, the runbook says,
and the schema of Kubernetes. Prometheus, Grafana and a cluster do not run here."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import kubernetes_validate
import pytest
import yaml

from fdstore.telemetry.metric_table import COUNTED
from fdstore_workers.__main__ import worker as worker_command
from fdstore_workers.status_server import GAUGES
from tests.deploy.deployed import DEPLOY, ROOT

sys.path.insert(0, str(ROOT / ".ci"))

import generate_dashboard

KUBERNETES = "1.33"
SERVED = {metric.name: {*metric.labels} for metric in (*COUNTED, *GAUGES)}
SERVED |= {
    f"{metric.name}{ending}": {*metric.labels, "le"}
    for metric in COUNTED
    if metric.kind == "histogram"
    for ending in ("_bucket", "_count", "_sum")
}
SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds."""


def check_expression(expression: str) -> None:
    """Check that all metrics of an expression are served, with the labels that it uses."""
    names = re.findall(r"\bfdstore_\w+", expression)
    assert names, expression
    assert set(names) <= SERVED.keys()
    labels = set().union(*(SERVED[name] for name in names)) | SCRAPED
    used = re.findall(r"[{,]\s*(\w+)\s*=~?\"", expression)
    used += [label.strip() for by in re.findall(r"\bby \(([^)]*)\)", expression) for label in by.split(",")]
    assert set(used) <= labels, expression
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing), expression


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())["groups"]
    return list(group["rules"])


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_uses_served_metrics_and_links_to_a_section_of_the_runbook(alert):
    check_expression(alert["expr"])

    page, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    titles = re.findall(r"(?m)^#+ (.+)$", (DEPLOY / page).read_text())
    assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert alert["labels"]["severity"] in ("warning", "critical")
    assert alert["annotations"]["summary"]
    labels = re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"])
    assert all(label in alert["expr"] or label == "instance" for label in labels)


def test_the_dashboard_is_drawn_from_the_metrics():
    drawn = (DEPLOY / "grafana" / "fdstore.json").read_text()

    assert drawn == generate_dashboard.dashboard(), "it is stale: make generate"


def test_every_panel_of_the_dashboard_shows_served_metrics():
    dashboard = json.loads((DEPLOY / "grafana" / "fdstore.json").read_text())
    panels = dashboard["panels"]

    places = [tuple(panel["gridPos"].values()) for panel in panels]
    assert len({panel["id"] for panel in panels}) == len(set(places)) == len(panels)
    assert all(panel["targets"] for panel in panels)
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    for expression in expressions:
        check_expression(expression)
    shown = set(re.findall(r"\bfdstore_\w+", " ".join(expressions)))
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}
    assert {metric.name for metric in (*COUNTED, *GAUGES)} - families == {"fdstore_build_info"}


@pytest.mark.parametrize(
    "page", [*DEPLOY.glob("*.md"), ROOT / "docs" / "how-to" / "observability.md"], ids=lambda page: page.name
)
def test_every_metric_that_a_page_names_is_served(page):
    named = set(re.findall(r"`(fdstore_\w+)`", page.read_text()))

    assert named <= SERVED.keys()


def manifests() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        found += [(f"{file.name} {each['kind']}", each) for each in yaml.safe_load_all(file.read_text())]
    return found


@pytest.mark.parametrize("manifest", [each for _, each in manifests()], ids=[name for name, _ in manifests()])
def test_a_manifest_is_valid(manifest):
    if manifest["apiVersion"].startswith("keda.sh/"):  # not of Kubernetes itself
        check_expression(manifest["spec"]["triggers"][0]["metadata"]["query"])
        return
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_the_workers_of_kubernetes_are_probed_limited_and_stopped_gracefully():
    of = dict(manifests())
    pod = of["worker.yaml Deployment"]["spec"]["template"]["spec"]
    [worker] = pod["containers"]

    options = {word for word in worker["args"] if word.startswith("--")}
    assert options <= {option for each in worker_command.params for option in each.opts}
    port = worker["args"][worker["args"].index("--metrics-port") + 1]
    assert [str(each["containerPort"]) for each in worker["ports"]] == [port]
    paths = {name: worker[name]["httpGet"]["path"] for name in ("readinessProbe", "livenessProbe")}
    assert paths == {"readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    assert pod["terminationGracePeriodSeconds"] > 25
    assert "memory" in worker["resources"]["limits"]
    for container in (worker, *of["redis.yaml StatefulSet"]["spec"]["template"]["spec"]["containers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    scaled = of["autoscaling.yaml ScaledObject"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == of["worker.yaml Deployment"]["metadata"]["name"]
    policy = of["networkpolicy.yaml NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]
    assert policy == of["worker.yaml Deployment"]["spec"]["selector"]["matchLabels"]


def test_the_container_is_probed_at_the_port_that_its_worker_serves():
    dockerfile = (DEPLOY / "Dockerfile").read_text()

    [port] = re.findall(r'"--metrics-port", "(\d+)"', dockerfile)
    assert f'CMD ["python", "/opt/fdstore/worker_alive.py", "{port}"]' in dockerfile
    assert f'"--metrics-port", "{port}"' in (DEPLOY / "compose.yaml").read_text()
    assert f"port: {port}" in (DEPLOY / "prometheus" / "prometheus.yaml").read_text()
    assert ".[agents,sandbox,metrics,otel]" in dockerfile
    assert f"--metrics-port {port}" in (ROOT / "docs" / "how-to" / "observability.md").read_text()
