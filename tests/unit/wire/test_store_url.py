"""Parsing of store URLs into the kind of server and its hosts."""

from __future__ import annotations

import re
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.agents.runtime.broker_url import find_broker
from fdstore.errors import InvalidArgument
from fdstore.setup import url_options
from fdstore.setup.url_options import has_password, hide_password, is_plain
from fdstore.store.keys import check_root
from fdstore.wire.store_url import parse_store_url


@pytest.mark.parametrize(
    ("url", "kind", "hosts", "master"),
    [
        ("redis://db.example:6380/3", "redis", (), ""),
        ("unix:///run/redis.sock", "redis", (), ""),
        ("redis+cluster://a", "cluster", (("a", 6379),), ""),
        (
            "redis+cluster://ann:pw@a:7000,b,[::1]:7002/0",
            "cluster",
            (("a", 7000), ("b", 6379), ("::1", 7002)),
            "",
        ),
        ("rediss+cluster://a:1?ssl_ca_certs=ca.crt", "cluster", (("a", 1),), ""),
        ("sentinel://a,b:1/main/2", "sentinel", (("a", 26379), ("b", 1)), "main"),
        ("sentinel://:pw@a/a%20name", "sentinel", (("a", 26379),), "a name"),
    ],
)
def test_every_form_of_url_is_parsed(url: str, kind: str, hosts: tuple[object, ...], master: str) -> None:
    place = parse_store_url(url)

    assert (place.kind, place.hosts, place.master) == (kind, hosts, master)


@given(st.from_regex(url_options._PLAIN, fullmatch=True))
def test_a_plain_url_is_one_that_is_parsed(url: str) -> None:
    assert is_plain(url)
    assert parse_store_url(url).kind == "redis"


@pytest.mark.parametrize(
    "url",
    [
        "redis://ann@a",
        "redis://a/x",
        "redis://a:70000",
        "redis://a?db=x",
        "rediss://",
        "redis://:p/w@a",
        "a:6379",
    ],
)
def test_a_wrong_url_is_not_plain(url: str) -> None:
    assert not is_plain(url)


def test_login_options_and_database_apply_to_every_host() -> None:
    cluster = parse_store_url("rediss+cluster://ann:p%40ss@a:7000,b:7001?ssl_ca_certs=ca.crt").options
    behind = parse_store_url("sentinel://ann:p%40ss@a,b/main/2").options

    assert (
        (cluster["username"], cluster["password"])
        == (behind["username"], behind["password"])
        == ("ann", "p@ss")
    )
    assert cluster["ssl_ca_certs"] == "ca.crt"
    assert (cluster["db"], behind["db"]) == (0, 2)


@pytest.mark.parametrize("url", ["redis+cluster://ann:s3cret@a:1,b:2", "sentinel://:s3cret@a:1,b:2/main"])
def test_the_displayed_url_has_the_hosts_and_no_password(url: str) -> None:
    shown = parse_store_url(url).shown

    assert "s3cret" not in shown
    assert "a:1,b:2" in shown


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis+cluster://a:1/3", "no database but 0"),
        ("redis+cluster://a:port", "cannot be read"),
        ("redis+cluster://a:1,,b:2", "not a host with a port"),
        ("redis+cluster://a:70000", "not a host with a port"),
        ("redis+cluster://", "not a host with a port"),
        ("redis-cluster://a:1", r"begins with .*redis\+cluster://"),
        ("sentinel://a:26379", "name the primary to ask the Sentinels for"),
        ("sentinel://a..b/main", "label"),
        ("http://a", "begins with"),
        ("a:6379", "begins with"),
    ],
)
def test_other_forms_are_refused_with_the_reason(url: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said) as caught:
        parse_store_url(url)

    assert caught.value.argument == "url"


@pytest.mark.parametrize(
    "url",
    [
        "redis://:sec/ret@host:1",
        "redis://:sec#ret@host",
        "redis://ann:sec?ret@host/0",
        "redis+cluster://:sec/ret@a,b",
        "sentinel://:sec/ret@a,b/main",
        "redis://[::sec",
    ],
)
def test_the_error_for_an_invalid_url_reveals_no_password(url: str) -> None:
    assert hide_password(url) == "the URL given"
    with pytest.raises(InvalidArgument, match="%2F") as caught:
        parse_store_url(url)
    assert "sec" not in str(caught.value)
    assert caught.value.__suppress_context__
    with pytest.raises(InvalidArgument) as of_the_queue:
        find_broker(url)
    assert "sec" not in str(of_the_queue.value)


def test_a_url_must_be_text() -> None:
    with pytest.raises(InvalidArgument, match="url: a str is needed, not 'int'"):
        parse_store_url(5)  # type: ignore[arg-type]


def test_passing_a_child_id_as_a_tree_names_the_real_tree() -> None:
    with pytest.raises(InvalidArgument, match=r"triage\.1\.2 is a child; .* root, triage"):
        check_root("triage.1.2")


def test_a_password_in_the_query_string_is_hidden_too() -> None:
    assert hide_password("redis://host/0?password=s3cret&db=1") == "redis://host/0?password=***&db=1"
    assert hide_password("unix:///run/a@b.sock") == "unix:///run/a@b.sock"


def test_store_and_queue_parse_sentinel_urls_identically() -> None:
    url = "sentinel://ann:pw@a:1,b/main/2"
    place, broker = parse_store_url(url), find_broker(url)

    assert broker.url == "sentinel://ann:pw@a:1/2;sentinel://ann:pw@b:26379/2"
    assert broker.options["master_name"] == place.master
    assert place.hosts == (("a", 1), ("b", 26379))


def test_sentinels_have_a_login_of_their_own_and_tls_goes_to_them_too() -> None:
    url = "rediss+sentinel://ann:pw@a/main/2?sentinel_username=s&sentinel_password=p%40&ssl_ca_certs=ca.crt"
    place, broker = parse_store_url(url), find_broker(url)

    assert place.sentinel_login == {"username": "s", "password": "p@"}
    assert place.url == "rediss://ann:pw@a:26379/2?ssl_ca_certs=ca.crt"
    assert "p@" not in place.shown.replace("ann:***@", "")
    assert place.shown.endswith("?sentinel_username=s&sentinel_password=***&ssl_ca_certs=ca.crt")
    assert broker.tls == {"ssl_cert_reqs": "required", "ssl_ca_certs": "ca.crt"}
    asked_with = broker.options["sentinel_kwargs"]
    assert {"username": "s", "password": "p@", "ssl": True, **broker.tls}.items() <= asked_with.items()
    assert "pw" not in broker.shown


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://a?protocol=3", "'protocol'"),
        ("redis://a?decode_responses=true", "'decode_responses'"),
        ("redis://a?foo=x", "'foo'"),
        ("redis://a/abc", "'abc'"),
        ("redis://a/1/2", "'1/2'"),
        ("redis://a?db=one", "'one'"),
        ("redis://a?db=-1", "'-1'"),
        ("redis://a?db=", "''"),
        ("unix:///run/redis.sock?socket_timeout=1", "'socket_timeout'"),
        ("unix:///run/redis.sock?ssl_ca_certs=x", "'ssl_ca_certs' is for TLS"),
        ("redis://a?ssl_cert_reqs=none", "'ssl_cert_reqs' is for TLS"),
        ("redis://a?sentinel_password=x", "'sentinel_password' is for sentinel"),
        ("rediss://a?ssl_cert_reqs=perhaps", "perhaps"),
        ("rediss://a?ssl_min_version=new", "ssl_min_version"),
        ("rediss://a?ssl_min_version=99", "771 (TLS 1.2)"),
        ("rediss://a?ssl_min_version=TLSv1.2", "771 (TLS 1.2)"),
        ("rediss+cluster://a?ssl_min_version=-5", "771 (TLS 1.2)"),
        ("rediss://a?ssl_keyfile=key.pem", "name that with ssl_certfile"),
        ("sentinel://a/main/abc", "'abc'"),
        ("sentinel://a/main?retry=1", "'retry'"),
        ("redis+cluster://a?db=3", "no database but 0"),
        ("redis+cluster://a?max_connections=3", "'max_connections'"),
    ],
)
def test_an_unsupported_option_is_named(url: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(said)) as caught:
        parse_store_url(url)

    assert caught.value.argument == "url"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://a?foo=x", "'foo'"),
        ("redis://a/abc", "'abc'"),
        ("sentinel://a/main?protocol=3", "'protocol'"),
    ],
)
def test_an_unsupported_option_of_the_queue_is_named_with_its_variable(url: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(said)) as caught:
        find_broker("redis://b", url)

    assert caught.value.argument == "FDSTORE_BROKER_URL"


def test_the_error_for_a_wrong_option_hides_a_misplaced_password() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_store_url("redis://ann:sec?ret=x@db.example")

    assert "ret" not in str(caught.value).replace("redis", "")


SECRET_PLACES = [
    "redis://s3cret@db.example/0",
    "redis://s3cret:@db.example/0",
    "rediss://s3cret@db.example:6380",
    "unix://s3cret@/run/redis.sock",
    "redis+cluster://s3cret@a:7000,b:7001",
    "sentinel://s3cret@a,b/main",
    "sentinel://a/main?sentinel_username=s3cret",
    "redis://db.example/0?username=s3cret",
    "redis://db.example/0?pass%77ord=s3cret",
    "redis://ann:s3cret",
    "redis://ann:pw@db.example:s3cret/0",
    "redis+cluster://ann:pw@a:7000,b:s3cret",
]
"""URLs with a password where a careless person may write it."""


@pytest.mark.parametrize("url", SECRET_PLACES)
def test_a_password_in_the_wrong_place_of_a_url_is_hidden(url: str) -> None:
    assert "s3cret" not in hide_password(url)


def test_a_password_in_the_users_place_is_warned_of_as_one() -> None:
    assert has_password("redis://s3cret@db.example")


@pytest.mark.parametrize(
    "url",
    [
        "redis://db.example?passwd=s3cret",
        "redis://db.example?pass=s3cret&db=0",
        "redis://s3cret:pw@db.example?foo=x",
        "redis://db.example?db=one&passwd=s3cret",
        "rediss://db.example?Password=s3cret&ssl_cert_reqs=perhaps",
        "redis://db.example/x#s3cret",
        "http://s3cret:pw@db.example",
    ],
)
def test_an_error_for_a_refused_url_has_no_login_and_no_value_of_an_unknown_option(url: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_store_url(url)

    assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    assert "db.example" in str(caught.value)


@pytest.mark.parametrize("parse", [parse_store_url, find_broker])
@pytest.mark.parametrize(
    "url",
    ["{}", "{}://a", "redis://a/{}", "redis://a?{}=1", "redis://a?db={}", "redis+cluster://{}", "unix:///{}"],
)
def test_a_very_long_url_is_cut_wherever_it_is_shown(url: str, parse: Any) -> None:
    try:
        said = parse(url.format("a" * 100_000)).shown
    except InvalidArgument as error:
        said = str(error)

    assert len(said) < 2_000


@pytest.mark.parametrize("parse", [parse_store_url, find_broker])
@pytest.mark.parametrize("url", SECRET_PLACES)
def test_no_error_about_a_url_quotes_a_password_in_the_wrong_place(url: str, parse: Any) -> None:
    try:
        said = parse(url).shown
    except InvalidArgument as error:
        said = "".join(traceback.format_exception(error))

    assert "s3cret" not in said


@pytest.mark.parametrize(
    "url",
    [
        "redis://s3cret@db.example",
        "unix://s3cret@/run/r.sock",
        "redis://a?username=s3cret",
        "sentinel://x@a/main",
    ],
)
def test_a_user_without_a_password_is_refused_with_both_forms(url: str) -> None:
    with pytest.raises(InvalidArgument, match=r"write :PASSWORD@ .* or USER:PASSWORD@"):
        parse_store_url(url)
    with pytest.raises(InvalidArgument, match=r"write :PASSWORD@ .* or USER:PASSWORD@"):
        find_broker(url)


def test_a_user_whose_password_is_empty_can_be_named() -> None:
    assert parse_store_url("redis://ann:@db.example").options["username"] == "ann"


@pytest.mark.parametrize(
    "url", ["redis://db.example?username=ann&password=p%40", "redis://:p%40@a?username=ann&password=x"]
)
def test_the_queue_uses_a_login_in_the_options_as_the_store_does(url: str) -> None:
    options = parse_store_url(url).options

    assert (options["username"], options["password"]) == ("ann", "p@")
    assert "//ann:p%40@" in find_broker(url).url
