"""The page on 127.0.0.1: each view whole, and what changes in it as server-sent events."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlencode

import click
from flask import Flask, Response, abort, render_template, request, stream_with_context, url_for
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException

from s3commit.cli.page.door import Door
from s3commit.cli.page.job_view import job_view, log_view
from s3commit.cli.page.jobs_view import JobsView
from s3commit.cli.page.table_view import table_view
from s3commit.cli.render import age, moment, shortened
from s3commit.cli.session import Session
from s3commit.core.formats.strict_json import printable
from s3commit.core.model.amounts import many, size
from s3commit.core.model.errors import InvalidInputError, NotFoundError, S3CommitError
from s3commit.local.serving import Serving

# The content of each view, by the text behind the address's ``?``: a template's variables, and
# ``ended``, which says that nothing will change any more.
Views = Mapping[str, Callable[[Mapping[str, str]], dict[str, Any]]]

# A stream rests so many times as long as a look took: it takes a part of an account's rates.
REST = {"jobs": 10, "job": 2, "table": 10, "log": 10}
LEAST_REST, LONGEST_REST = 1.0, 60.0  # seconds


def make_page(session: Session, port: int) -> tuple[Flask, str]:
    """The application, and the address that leads into it."""
    application = Flask(__name__)
    application.jinja_env.globals |= {"age": age, "moment": moment, "many": many, "size": size}
    application.jinja_env.globals["shortened"] = shortened
    application.jinja_env.finalize = _text
    door = Door(application, port)
    views: Views = {
        **{"jobs": JobsView(session), "table": partial(table_view, session)},
        **{"job": partial(job_view, session), "log": partial(log_view, session)},
    }

    @application.get("/")
    @application.get("/<any(jobs, job, table, log):view>")
    def show(view: str = "jobs") -> str:
        asked = urlencode(list(request.args.items(multi=True)))
        found = _look(session, views, view, request.args)
        changes = "" if found["ended"] else f"{url_for('changes', view=view)}?{asked}"
        return render_template("page.html", view=view, changes=changes, **found)

    @application.get("/changes/<any(jobs, job, table, log):view>")
    def changes(view: str) -> Response:
        told = stream_with_context(_changes(session, views, view, request.args))
        return Response(told, mimetype="text/event-stream")

    @application.errorhandler(HTTPException)
    def refuse(error: HTTPException) -> Response:
        line = f"{error.code} {error.name}"
        if error.code in {403, 405}:  # to who may see nothing, not even the page's style
            said = printable(f"{line}: {error.description}")
            return Response(f"{said}\n", error.code, mimetype="text/plain")
        told = {"title": line, "text": error.description, "changes": ""}
        return Response(render_template("page.html", view="refused", **told), error.code)

    return application, door.address


def _look(session: Session, views: Views, view: str, asked: MultiDict[str, str]) -> dict[str, Any]:
    """The content of a view; an error is an answer of one line, as the command has it."""
    session.trusted.clear()  # the table may be another one since
    try:
        found: dict[str, Any] = views[view](asked)
    except (InvalidInputError, click.UsageError) as error:
        abort(400, error.message)
    except NotFoundError as error:
        abort(404, error.message)
    except S3CommitError as error:
        abort(502, f"{error.message} [{error.code}]; try again")
    return {**found, "warning": session.out.warning}


def _changes(
    session: Session, views: Views, view: str, asked: MultiDict[str, str]
) -> Iterator[str]:
    """The view's inside whenever it is another one; a look that fails says so, and continues.

    Between them comes a comment, by which a closed browser is detected.
    """
    seen, wait = "", session.environment
    while True:
        began = wait.monotonic()
        try:
            found = _look(session, views, view, asked)
            inside, ended = render_template("inside.html", view=view, **found), found["ended"]
        except HTTPException as error:
            inside, ended = "", False
            yield _event("trouble", str(error.description))
        if inside and inside != seen:
            seen = inside
            yield _event("change", inside)
        if ended:
            yield _event("end", "")
            return
        wait.sleep(min(max(LEAST_REST, REST[view] * (wait.monotonic() - began)), LONGEST_REST))
        yield ": still here\n\n"


def _event(kind: str, text: str) -> str:
    """One event of https://html.spec.whatwg.org/multipage/server-sent-events.html."""
    return f"event: {kind}\ndata: {json.dumps(text)}\n\n"


def _text(value: Any) -> Any:
    """The text of a value in a template: nothing for None; unprintable characters as escapes."""
    if value is None:
        return ""
    return printable(value) if type(value) is str else value


@contextmanager
def served(session: Session, port: int) -> Iterator[str]:
    """The page for the length of the block: the address that leads into it. Raises as `Serving`."""
    address = ""

    def make(taken: int) -> Flask:
        nonlocal address
        application, address = make_page(session, taken)
        return application

    with closing(Serving(port, make, "ui")):
        yield address
