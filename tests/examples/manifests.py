"""The manifests in examples/kubernetes, each for what Kubernetes and Kubeflow need of it, and each pod's lrun for what it
makes of the variables that it would find there.
usage: manifests.py LRUN FOLDER"""

import json
import os
import re
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("skipped: this Python has no yaml")
    sys.exit(77)

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
IN_ANY_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
problems = []


def check(right, what):
    if not right:
        problems.append(f"{current}: {what}")


def only_keys(mapping, allowed, where):
    check(isinstance(mapping, dict), f"{where} is no mapping")
    for key in mapping if isinstance(mapping, dict) else ():
        check(key in allowed, f"{where} has the unknown field '{key}'")


def check_pod(template, restart_policies):
    """The pod's specification, and its one container. Returns the container."""
    only_keys(template, {"metadata", "spec"}, "template")
    pod = template["spec"]
    only_keys(pod, {"subdomain", "restartPolicy", "terminationGracePeriodSeconds", "containers", "volumes"}, "pod")
    check(pod.get("restartPolicy") in restart_policies, f"restartPolicy is {pod.get('restartPolicy')}")
    check(pod.get("terminationGracePeriodSeconds", 30) > 30, "pods have no more time to end than lrun's --grace")
    check(len(pod["containers"]) == 1, "there is not one container")
    container = pod["containers"][0]
    only_keys(container, {"name", "image", "command", "env", "resources", "volumeMounts"}, "container")
    check(NAME.match(container["name"]), "the container's name is no DNS label")
    check(all(isinstance(word, str) for word in container["command"]), "a word of the command is no text")
    for variable in container.get("env", []):
        only_keys(variable, {"name", "value"}, "env")
        check(isinstance(variable["value"], str), f"the value of {variable['name']} is no text")
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", [])}
    check(set(mounts) == volumes, "volumes and volumeMounts do not match")
    check("/dev/shm" in mounts.values(), "shared memory is what a container has without a volume: 64 MB")
    return container


def plan(container, variables):
    """What lrun would do in a pod that finds `variables`."""
    command = list(container["command"])
    check(command[0] == "lrun", "the command is not lrun")
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **IN_ANY_POD}
    environment.update({variable["name"]: variable["value"] for variable in container.get("env", [])})
    environment.update(variables)
    run = subprocess.run([lrun, "--dry-run=json", *command[1:]], env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        check(False, f"lrun with {variables} ended with {run.returncode}: {run.stderr}")
        return None
    return json.loads(run.stdout)


def check_plan(container, variables, nodes, node_rank, host, port):
    made = plan(container, variables)
    if made is None:
        return
    meeting = made["rendezvous"]
    found = (meeting["min_nodes"], meeting["max_nodes"], meeting["node_rank"], meeting["host"], meeting["port"])
    wanted = (*nodes, node_rank, host, port)
    check(found == wanted, f"lrun with {variables} plans {found}, not {wanted}")


def indexed_job(documents):
    service, job = documents
    check((service["apiVersion"], service["kind"]) == ("v1", "Service"), "there is no service")
    only_keys(service["spec"], {"clusterIP", "publishNotReadyAddresses", "selector"}, "service")
    check(service["spec"]["clusterIP"] == "None", "the service is not headless")
    check(service["spec"]["publishNotReadyAddresses"] is True, "pods find each other only once they are ready")
    check((job["apiVersion"], job["kind"]) == ("batch/v1", "Job"), "there is no job")
    name, spec = job["metadata"]["name"], job["spec"]
    only_keys(spec, {"completionMode", "completions", "parallelism", "backoffLimit", "template"}, "job")
    check(NAME.match(name), "the job's name is no DNS label")
    check(service["spec"]["selector"] == {"job-name": name}, "the service does not select the job's pods")
    check(spec["completionMode"] == "Indexed", "the job is not indexed")
    check(spec["completions"] == spec["parallelism"], "not all pods run at once")
    container = check_pod(spec["template"], {"Never", "OnFailure"})
    check(spec["template"]["spec"]["subdomain"] == service["metadata"]["name"], "the pods have no names")
    pods = spec["completions"]
    for index in range(pods):
        variables = {"JOB_COMPLETION_INDEX": str(index), "HOSTNAME": f"{name}-{index}"}
        first = f"{name}-0.{service['metadata']['name']}"
        check_plan(container, variables, (pods, pods), index, first, 29500)


def replicas_of(job):
    check((job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob"), "there is no PyTorchJob")
    only_keys(job["spec"], {"elasticPolicy", "pytorchReplicaSpecs"}, "PyTorchJob")
    replicas = job["spec"]["pytorchReplicaSpecs"]
    only_keys(replicas, {"Master", "Worker"}, "pytorchReplicaSpecs")
    containers = {}
    for role, spec in replicas.items():
        only_keys(spec, {"replicas", "restartPolicy", "template"}, role)
        check(spec["restartPolicy"] in {"Always", "OnFailure", "Never", "ExitCode"}, f"restartPolicy of {role}")
        check("restartPolicy" not in spec["template"]["spec"], "the operator overwrites a pod's restartPolicy")
        containers[role] = check_pod({"spec": {**spec["template"]["spec"], "restartPolicy": "Never"}}, {"Never"})
        check(containers[role]["name"] == "pytorch", "the operator looks for a container named 'pytorch'")
    return replicas, containers


def pytorch_job(documents):
    (job,) = documents
    replicas, containers = replicas_of(job)
    name = job["metadata"]["name"]
    check(replicas["Master"]["replicas"] == 1, "there is not one master")
    pods = 1 + replicas["Worker"]["replicas"]
    for rank in range(pods):
        variables = {"MASTER_ADDR": f"{name}-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": str(pods),
                     "RANK": str(rank), "PYTHONUNBUFFERED": "1"}
        newer = {**variables, "PET_NNODES": str(pods), "PET_NODE_RANK": str(rank)}
        for found in (variables, newer):
            check_plan(containers["Worker" if rank else "Master"], found, (pods, pods), rank, f"{name}-master-0", 23456)


def elastic_job(documents):
    (job,) = documents
    replicas, containers = replicas_of(job)
    policy = job["spec"]["elasticPolicy"]
    only_keys(policy, {"rdzvBackend", "minReplicas", "maxReplicas", "maxRestarts"}, "elasticPolicy")
    check(policy["rdzvBackend"] == "c10d", "lrun knows the backend c10d")
    low, high = policy["minReplicas"], policy["maxReplicas"]
    check(low <= replicas["Worker"]["replicas"] <= high, "there are not minReplicas to maxReplicas workers")
    check("Master" not in replicas, "an elastic job has no master")
    host = f"{job['metadata']['name']}-worker-0"
    variables = {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": f"{host}:23456", "PET_RDZV_ID": "train",
                 "PET_NNODES": f"{low}:{high}", "PET_MAX_RESTARTS": str(policy["maxRestarts"])}
    check_plan(containers["Worker"], variables, (low, high), None, host, 23456)


CHECKS = {"indexed-job.yaml": indexed_job, "pytorchjob.yaml": pytorch_job, "elastic.yaml": elastic_job}
lrun, folder = sys.argv[1:]
current = folder
found = sorted(name for name in os.listdir(folder) if name.endswith((".yaml", ".yml")))
check(found == sorted(CHECKS), f"the manifests are {found}")
for current in found:
    with open(os.path.join(folder, current), encoding="utf-8") as file:
        CHECKS.get(current, lambda documents: None)(list(yaml.safe_load_all(file)))
for problem in problems:
    print(problem)
sys.exit(1 if problems else 0)
