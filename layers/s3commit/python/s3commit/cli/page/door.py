"""Access to the page: for those who were given its address, by its own pages alone, to read.

Other programs of this machine can connect to its port, and any site can have a browser do so: by a
form or a frame, or under a name of its own that it has lead to 127.0.0.1.
"""

import hmac
import secrets
from urllib.parse import quote, urlencode

from flask import Flask, Response, abort, request

from s3commit.local.serving import HOST

OWN = {"same-origin", "none"}  # https://www.w3.org/TR/fetch-metadata/: none is the person's doing
ADDRESS = "open the address that the command printed"
# Nothing is fetched from elsewhere, nothing within a page is run, and no page shows this one.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Door:
    """Checks each request to the application, also for routes that it does not have.

    The token comes in the address that is printed. Then it is a cookie, which no script can read;
    a link can be handed on without it. Another site can lead a browser to a page, as a link in a
    mail does, and neither read nor frame it. A view that takes many requests is opened from our own
    pages alone.
    """

    def __init__(self, application: Flask, port: int) -> None:
        self._token = secrets.token_urlsafe(32)
        at = "" if port == 80 else f":{port}"  # no browser says http's
        self._hosts = {f"{name}{at}" for name in (HOST, "localhost")}
        self._cookie = f"s3commit-{port}"  # browsers send cookies to all ports of a host
        self.address = f"http://{HOST}{at}/?token={self._token}"
        application.before_request(self._judge)
        application.after_request(_harden)

    def _judge(self) -> Response | None:
        origin = request.headers.get("Origin")
        own = {f"http://{host}" for host in self._hosts}
        if request.headers.get("Host") not in self._hosts or (
            origin is not None and origin not in own
        ):
            abort(403, f"this host, or site, has no access: {ADDRESS}")
        if request.method not in {"GET", "HEAD"}:
            abort(405, "this page only reads")
        takes_long = request.path == "/log" or "fsck" in request.args
        if takes_long and request.headers.get("Sec-Fetch-Site", "none") not in OWN:
            abort(403, "another site cannot open this view: open the address yourself")
        if self._is_token(request.args.get("token", "")):
            return self._let_in()
        if not self._is_token(request.cookies.get(self._cookie, "")):
            abort(
                403,
                f"the token is missing, or an earlier command's: {ADDRESS}, then this link again",
            )
        return None

    def _is_token(self, said: str) -> bool:
        return hmac.compare_digest(said.encode(errors="replace"), self._token.encode())

    def _let_in(self) -> Response:
        """To the same page without the token, which then is in no history and no link."""
        left = [(name, text) for name, text in request.args.items(multi=True) if name != "token"]
        place = quote("/" + request.path.lstrip("/\\"))  # two slashes would lead to another host
        answer = Response(status=303, headers={"Location": f"{place}?{urlencode(left)}"})
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="Lax")
        return answer


def _harden(answer: Response) -> Response:
    answer.headers.update(HEADERS)
    return answer
