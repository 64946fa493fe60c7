# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Credentials of servers, TLS and proxies: who gets a secret, and where none may ever be seen."""

import base64
import json
import os
import ssl

import pytest

import hostile
import models
from daemon import StartError
from hub import Hub
from loopback import Reply
from repositories import Repository
from tls import Certificates
from waiting import until

NAME, FILE = "org/m", "model.safetensors"
CONTENT = b"".join(models.noise(31, 3 << 20))
FILES = models.served("m", {FILE: CONTENT, "config.json": b"{}"})
IMPATIENT = {"deadline": "2s"}

pytestmark = [pytest.mark.short, pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")]


# ---- the file, and servers that want what is in it

class CredentialsFile:
    def __init__(self, path):
        self.path = path

    def write(self, *entries, mode=0o644):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"credentials": list(entries)}))
        new.chmod(mode)
        new.replace(self.path)


@pytest.fixture
def credentials(folder):
    return CredentialsFile(folder / "credentials.json")


@pytest.fixture
def node(weightfs, credentials):
    def make(sources=None, config=None, **options):
        return weightfs(sources, config=IMPATIENT | {"credentials": str(credentials.path)} | (config or {}),
                        **options)
    return make


class GuardedOrigin(hostile.HostileOrigin):
    """401 for whoever does not send `wanted`, a dict of headers."""

    def __init__(self, wanted, files=None, **options):
        super().__init__(FILES if files is None else files, **options)
        self.wanted = wanted

    def plan(self, request):
        if any(request.headers.get(name) != value for name, value in self.wanted.items()):
            return Reply(401, {"Content-Length": "0"}, b"")
        return super().plan(request)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def readable(mounted, name=NAME):
    return (mounted.mount / name / FILE).read_bytes() == CONTENT


def secret_file(folder, name, text):
    path = folder / name
    path.write_text(text + "\n")
    path.chmod(0o644)
    return str(path)


# ---- who gets what

@pytest.mark.parametrize("how", ["token", "token_file", "token_env", "password", "header"])
def test_each_kind_of_credential_is_sent_with_every_request(node, credentials, folder, how):
    wanted, entry, env = {
        "token": (bearer("t-one"), {"token": "t-one"}, {}),
        "token_file": (bearer("t-two"), {"token_file": secret_file(folder, "token", "t-two")}, {}),
        "token_env": (bearer("t-three"), {"token_env": "MODELS_TOKEN"}, {"MODELS_TOKEN": "t-three"}),
        "password": (basic("u", "p:w\u00fc"), {"username": "u", "password": "p:w\u00fc"}, {}),
        "header": ({"X-Api-Key": "k four"}, {"header": "X-Api-Key", "value": "k four"}, {}),
    }[how]
    with GuardedOrigin(wanted) as origin:
        credentials.write({"url": origin.url("m")} | entry)
        mounted = node({NAME: origin.url("m/"), "org/one": origin.url(f"m/{FILE}")}, env=env)
        assert readable(mounted) and readable(mounted, "org/one")
        assert {request.status for request in origin.requests} <= {200, 206}


def test_a_refusal_says_which_credential_was_tried(node, credentials):
    with GuardedOrigin(bearer("right")) as origin:
        credentials.write({"url": origin.url("m/"), "token": "wrong-token"})
        mounted = node()
        refused = mounted.cli("add", NAME, origin.url("m/"), check=False)
        assert refused.returncode == 1
        assert f"{credentials.path} (for {origin.url('m/')})" in refused.stderr
        assert "wrong-token" not in refused.stderr
        credentials.write()
        assert "no credentials were sent" in mounted.cli("add", NAME, origin.url("m/"), check=False).stderr


def test_the_files_are_read_again_when_they_change_and_a_bad_one_changes_nothing(node, credentials, folder):
    with GuardedOrigin(bearer("first")) as origin:
        token = secret_file(folder, "token", "zeroth")
        credentials.write({"url": origin.url(), "token_file": token})
        mounted = node()

        def added():
            return mounted.cli("add", NAME, origin.url("m/"), check=False).returncode == 0
        assert not added()
        secret_file(folder, "token", "first")
        assert added()
        origin.wanted = bearer("second")
        mounted.cli("rm", NAME)
        assert not added()
        credentials.write({"url": origin.url(), "token": "second"})
        assert added() and readable(mounted)
        mounted.cli("rm", NAME)
        for text in ("{\"credentials\": [{\"token\": \"second-and-cut", "[]"):
            credentials.path.write_text(text)
            assert added()
            mounted.cli("rm", NAME)
        assert "what it said before still counts" in mounted.log_text()
        assert "second-and-cut" not in mounted.log_text()
        credentials.write({"url": origin.url(), "token": "second"}, mode=0o666)
        assert added()
        assert "everybody may write it" in mounted.log_text()
        mounted.cli("rm", NAME)
        credentials.path.unlink()
        assert not added()


def test_what_cannot_be_used_is_said_before_anything_is_mounted(node, credentials):
    for entry, mode, says in (
            ({"url": "http://models.example.com/", "token": "abc-def"}, 0o644, "plain http"),
            ({"url": "https://models.example.com/", "token": "abc-def"}, 0o666, "everybody may write it"),
            ({"url": "https://models.example.com/", "tokn": "abc-def"}, 0o644, "unknown key \"tokn\"")):
        credentials.write(entry, mode=mode)
        mounted = node(start=False)
        with pytest.raises(StartError) as error:
            mounted.start()
        assert error.value.code == 2 and says in error.value.text
        checked = mounted.cli("config", "check", "--config", mounted.folder / "config.json", check=False)
        assert checked.returncode == 2 and says in checked.stderr
        assert "abc-def" not in error.value.text + checked.stderr + checked.stdout


def test_the_longest_url_counts_and_nobody_else_gets_anything(node, credentials):
    files = FILES | models.served("mx", {FILE: CONTENT}) | {f"deep/{path}": file for path, file in FILES.items()}
    with hostile.HostileOrigin(files) as origin, \
            hostile.HostileOrigin(FILES, address="127.0.0.2") as other:
        credentials.write({"url": origin.url("m"), "token": "of-m"}, {"url": origin.url("deep/"), "token": "of-deep"},
                          {"url": origin.url("deep/m/"), "header": "X-Key", "value": "of-deep-m"})
        mounted = node({NAME: origin.url("m/"), "org/mx": origin.url("mx/"), "org/deep": origin.url("deep/m/"),
                        "org/other": other.url("m/")})
        for name in (NAME, "org/mx", "org/deep", "org/other"):
            assert readable(mounted, name)
        sent = {request.path: (request.headers.get("Authorization"), request.headers.get("X-Key"))
                for request in origin.requests}
        assert sent["m/weightfs.json"] == ("Bearer of-m", None)
        assert sent["mx/weightfs.json"] == (None, None)
        assert sent["deep/m/weightfs.json"] == (None, "of-deep-m")
        assert all("Authorization" not in request.headers for request in other.requests)


def test_a_redirect_to_another_host_takes_no_credential_along(node, credentials):
    with hostile.HostileOrigin({"blob": CONTENT}, address="127.0.0.2") as other, \
            GuardedOrigin({"X-Api-Key": "keep-me"}) as origin:
        credentials.write({"url": origin.url(), "header": "X-Api-Key", "value": "keep-me"})
        origin.faults[f"m/{FILE}"] = [hostile.redirect(other.url("blob"))]
        mounted = node({NAME: origin.url("m/")})
        assert readable(mounted)
        assert other.requests and all("X-Api-Key" not in request.headers for request in other.requests)


def test_a_mirror_of_the_hub_gets_its_own_credential_and_not_the_hubs(node, credentials):
    repository = Repository(NAME, {"config.json": b"{}", FILE: CONTENT})
    with Hub(repository, tokens={"hf_usual": "a"}) as hub, \
            Hub(repository, address="127.0.0.3", cdn_address="127.0.0.4", tokens={"mirrors_own": "b"}) as mirror:
        credentials.write({"url": mirror.endpoint, "token": "mirrors_own"})
        mounted = node({NAME: f"hf://{NAME}", "org/x": f"hf://{NAME}?endpoint={mirror.endpoint}"},
                       env={"HF_ENDPOINT": hub.endpoint, "HF_TOKEN": "hf_usual"})
        assert readable(mounted) and readable(mounted, "org/x")
        for server, token in ((hub, "hf_usual"), (mirror, "mirrors_own")):
            assert {request.token for request in server.asked() if request.kind != "cdn"} <= {token}
            assert {request.token for request in server.asked("cdn")} <= {None}
        assert mirror.asked("info")


# ---- TLS

def test_client_certificates_are_shown_to_whom_they_are_for_and_renewed(node, credentials, certificates):
    chain, key = certificates.made("client")
    with hostile.HostileOrigin(FILES, tls=certificates.mutual()) as origin:
        tls = {"url": origin.url(), "ca_bundle": str(certificates.ca)}
        credentials.write(tls)
        mounted = node()

        def refusal():
            done = mounted.cli("add", NAME, origin.url("m/"), check=False)
            return done.stderr if done.returncode else None
        assert refusal()  # "certificate required", unless its reset overtakes that
        assert not origin.requests
        credentials.write(tls | {"client_certificate": str(chain), "client_key": str(certificates.made("another")[1])})
        assert refusal()
        credentials.write(tls | {"client_certificate": str(chain), "client_key": str(key)})
        assert refusal() is None
        assert readable(mounted)
        # The same names: what the files have counts, and no connection of before is used.
        stranger, its_key = Certificates(certificates.folder / "stranger").made("client")
        chain.write_bytes(stranger.read_bytes())
        key.write_bytes(its_key.read_bytes())
        mounted.cli("rm", NAME)
        asked = len(origin.requests)
        said = refusal()
        assert "unknown ca" in said or f"client certificate {chain}" in said
        assert len(origin.requests) == asked


def test_certificates_that_do_not_hold_are_a_clear_error(node, credentials, certificates):
    credentials.write()
    mounted = node(config={"ca_bundle": str(certificates.ca)})
    old = certificates.no_newer_than(ssl.TLSVersion.TLSv1_1)
    stranger = Certificates(certificates.folder / "nobody")
    for tls, says in ((certificates.expired(), "expired"), (stranger, "certificate"), (old, "protocol version")):
        with hostile.HostileOrigin(FILES, tls=tls) as origin:
            done = mounted.cli("add", NAME, origin.url("m/"), check=False, timeout=20)
            assert done.returncode == 1 and says in done.stderr.lower(), done.stderr
            assert not origin.requests
    with hostile.HostileOrigin(FILES, tls=certificates.no_newer_than(ssl.TLSVersion.TLSv1_2)) as origin:
        mounted.cli("add", NAME, origin.url("m/"))
        assert readable(mounted)


def test_a_certificate_is_not_shown_where_a_redirect_leads_and_plain_http_is_not_followed(node, credentials,
                                                                                         certificates):
    chain, key = certificates.made("client")
    with hostile.HostileOrigin(FILES | {"blob": CONTENT}, address="127.0.0.2", tls=certificates.mutual()) as other, \
            hostile.HostileOrigin({"blob": CONTENT}, address="127.0.0.2") as plain, \
            hostile.HostileOrigin(FILES, tls=certificates.mutual()) as origin:
        credentials.write({"url": origin.url(), "client_certificate": str(chain), "client_key": str(key)})
        mounted = node({NAME: origin.url("m/")}, config={"ca_bundle": str(certificates.ca)})
        for target in (other.url("blob"), plain.url("blob")):
            origin.faults[f"m/{FILE}"] = [hostile.redirect(target)]
            with pytest.raises(OSError):
                readable(mounted)
        assert not other.requests and not plain.requests
        origin.faults.clear()
        until(lambda: error_free(lambda: readable(mounted)), 20, "the file itself")


def error_free(action):
    try:
        return action()
    except OSError:
        return False


# ---- proxies

class Proxy(GuardedOrigin):
    """Answers for every host, to those who know the password: what is asked for is http://HOST/PATH."""

    def __init__(self, user, password):
        super().__init__({"Proxy-Authorization": basic(user, password)["Authorization"]})
        self.hosts = []

    def ask(self, handler):
        scheme, _, rest = handler.path.partition("://")
        host, _, path = rest.partition("/")
        assert scheme == "http"
        self.hosts.append(host)
        handler.path = "/" + path
        return super().ask(handler)


def test_proxies_of_the_environment_are_used_but_not_for_loopback(weightfs):
    with Proxy("who", "proxy-password") as proxy, hostile.HostileOrigin(FILES) as origin:
        address = proxy.url().replace("http://", "http://who:proxy-password@")
        proxy.files["elsewhere"] = CONTENT
        proxy.faults[f"m/{FILE}"] = [hostile.redirect("http://cdn.invalid:81/elsewhere")]
        env = {"http_proxy": address, "https_proxy": address, "no_proxy": "direct.invalid"}
        mounted = weightfs({NAME: "http://models.invalid/m/", "org/here": origin.url("m/")}, env=env, config=IMPATIENT)
        assert readable(mounted) and readable(mounted, "org/here")
        assert set(proxy.hosts) == {"models.invalid", "cdn.invalid:81"}
        direct = mounted.cli("add", "org/x", "http://direct.invalid/m/", check=False, timeout=30)
        assert direct.returncode != 0 and "direct.invalid" not in proxy.hosts
        assert "proxy-password" not in everything_shown(mounted) + direct.stderr


@pytest.mark.parametrize("address", ["http://u:proxy-password@127.0.0.1:1", "nonsense://u:proxy-password@h:1",
                                     "http://u:proxy-password@127.0.0.1:99999999", "http://u:proxy-password@[::1"])
def test_what_is_wrong_with_a_proxy_is_said_without_its_password(weightfs, address):
    mounted = weightfs(env={"http_proxy": address}, config=IMPATIENT)
    done = mounted.cli("add", NAME, "http://models.invalid/m/", check=False, timeout=60)
    assert done.returncode == 1
    assert "proxy-password" not in done.stderr + everything_shown(mounted)


# ---- where no secret may be seen

def process_texts(mounted):
    status = mounted.status()
    for pid in (status["pid"], status["keeper_pid"]):
        for name in ("environ", "cmdline"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                yield file.read().decode(errors="replace")


def everything_shown(mounted, *models_shown):
    """All that a person, a scraper or another process can see of this mount."""
    texts = [mounted.log_text(), *process_texts(mounted)]
    for command in (["status"], ["events"], ["ls"], ["config", "diff"], ["config", "check"]):
        for form in ([], ["--json"]):
            done = mounted.cli(*command, *form, check=False)
            texts += [done.stdout, done.stderr]
    for name in models_shown:
        for path in (mounted.mount / name, mounted.mount / name / FILE):
            texts += [f"{key}={os.getxattr(path, key)!r}" for key in os.listxattr(path)]
            done = mounted.cli("why", path, check=False)
            texts += [done.stdout, done.stderr]
    for path in mounted.state.rglob("*"):
        if path.is_file():
            texts.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(texts)


def test_secrets_are_nowhere_to_be_seen(weightfs, credentials, folder):
    secrets = {"hub": "hf_SECRETofTheHub", "token": "SECRETtoken", "file": "SECRETinAFile", "env": "SECRETinAVariable",
               "password": "SECRETpassword", "header": "SECRETheader", "proxy": "SECRETofTheProxy"}
    encoded = basic("me", secrets["password"])["Authorization"].split()[1]
    repository = Repository("org/hub", {"config.json": b"{}", FILE: CONTENT})
    with Hub(repository, tokens={secrets["hub"]: "a"}) as hub, \
            GuardedOrigin(bearer(secrets["token"])) as by_token, GuardedOrigin(bearer(secrets["file"])) as by_file, \
            GuardedOrigin(bearer(secrets["env"])) as by_env, \
            GuardedOrigin(basic("me", secrets["password"])) as by_password, \
            GuardedOrigin({"X-Key": secrets["header"]}) as by_header, GuardedOrigin(bearer("other")) as refusing:
        credentials.write(
            {"url": by_token.url(), "token": secrets["token"]}, {"url": by_env.url(), "token_env": "MY_TOKEN"},
            {"url": by_file.url(), "token_file": secret_file(folder, "token", secrets["file"])},
            {"url": by_password.url(), "username": "me", "password": secrets["password"]},
            {"url": by_header.url(), "header": "X-Key", "value": secrets["header"]},
            {"url": refusing.url(), "token": secrets["token"]})
        servers = (by_token, by_file, by_env, by_password, by_header)
        sources = {f"org/m{at}": server.url("m/") for at, server in enumerate(servers)} | {"org/hub": "hf://org/hub"}
        proxy = f"http://me:{secrets['proxy']}@127.0.0.1:1"
        mounted = weightfs(sources, config=IMPATIENT | {"credentials": str(credentials.path), "log_level": "debug"},
                           env={"HF_TOKEN": secrets["hub"], "HUGGING_FACE_HUB_TOKEN": secrets["hub"],
                                "HF_ENDPOINT": hub.endpoint, "MY_TOKEN": secrets["env"], "http_proxy": proxy,
                                "WEIGHTFS_CREDENTIALS": str(credentials.path)})
        for name in sources:
            assert readable(mounted, name), name
        answers = []
        for source in (refusing.url("m/"), f"https://me:{secrets['password']}@127.0.0.1:1/m/", "http://away.invalid/m/",
                       by_token.url("nothing/"), "hf://org/nothing"):
            done = mounted.cli("add", "org/x", source, check=False)
            assert done.returncode != 0
            answers += [done.stdout, done.stderr]

        def check():
            shown = everything_shown(mounted, *sources) + "\n".join(answers)
            seen = [name for name, secret in (secrets | {"encoded": encoded}).items() if secret in shown]
            assert not seen
        check()
        # The next daemon gets them as this one did, and as well hides them.
        asked = len(by_env.requests)
        mounted.wait_new_daemon(mounted.kill_daemon())
        for at, server in enumerate((by_env, hub)):
            mounted.cli("add", f"org/y{at}", server.url("m/") if server is by_env else "hf://org/hub")
        assert len(by_env.requests) > asked and by_env.requests[-1].status in (200, 206)
        assert {request.token for request in hub.asked("info")} == {secrets["hub"]}
        check()


def test_the_names_of_variables_stay_in_proc_and_what_is_started_gets_the_values(weightfs):
    mounted = weightfs(env={"HF_TOKEN": "hf_somebodys"})
    for pid in (mounted.pid, mounted.keeper_pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
        assert b"HF_TOKEN=" in variables and not any(one.partition(b"=")[2] for one in variables)
