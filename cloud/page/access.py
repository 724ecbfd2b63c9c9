"""Who may look at the page.

On loopback: whoever is on this machine. A request's Host must name the loopback too, for a page of somebody else's in
the same browser could have its own name lead here. Beyond loopback: an operator's certificate, or the token, which
`/?token=…` turns into a cookie.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

from sgfusion.durable import replace_file, sweep_unfinished
from sgfusion.errors import IdentityError, StoreError
from sgfusion.wire.identity import certified
from sgfusion.wire.web import names_this_machine

TOKEN_FILE = "page-token"  # noqa: S105 (the file's name)
LONGEST_QUERY = 1000
_SHORTEST = 32  # characters of a token


@dataclass(frozen=True)
class Refusal:
    """What a request is answered that may not pass."""

    status: int
    text: str


@dataclass(frozen=True)
class Welcome:
    """What a request with the right token in its address is answered: the page, without it, and a cookie."""

    cookie: str


@dataclass(frozen=True)
class Asker:
    """What a request says of who sends it."""

    host: str = ""
    query: str = ""
    cookie: str = ""
    authorization: str = ""
    uris: tuple[str, ...] | None = None
    """Those of a client's certificate that our CA has signed; None if there is none."""
    secure: bool = False
    """Whether it came over TLS."""


@dataclass(frozen=True)
class Access:
    """The rule of one page. Without a token it is one for this machine."""

    token: str | None = None

    def check(self, asker: Asker) -> Refusal | Welcome | None:
        """None if the request may pass."""
        if len(asker.query) > LONGEST_QUERY:
            return Refusal(414, f"the query has {len(asker.query)} characters: at most {LONGEST_QUERY} are read")
        if self.token is None:
            return None if names_this_machine(asker.host) else _STRANGE_HOST
        if asker.uris is not None:
            return _by_certificate(asker.uris)
        given = parse_qs(asker.query).get("token")
        if given:
            return Welcome(self._cookie(secure=asker.secure)) if self._is_token(given[0]) else _WRONG
        scheme, _, bearer = asker.authorization.partition(" ")
        if scheme.lower() == "bearer":
            return None if self._is_token(bearer.strip()) else _WRONG
        return None if self._has_cookie(asker.cookie) else _NO_TOKEN

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self.token or "").encode())

    @property
    def _name(self) -> str:
        """A browser sends a host's cookies to all its ports: those of two clouds have two names."""
        return f"sgfusion-{self._digest('name')[:12]}"

    def _digest(self, purpose: str) -> str:
        return hmac.new((self.token or "").encode(), purpose.encode(), hashlib.sha256).hexdigest()

    def _cookie(self, *, secure: bool) -> str:
        # Lax, not Strict: after a click on the link in somebody's web mail, a browser keeps a Strict cookie back from
        # the redirect too. Another site can have it sent with a top-level GET alone, and no GET changes anything here.
        cookie = f"{self._name}={self._digest('value')}; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000"
        return f"{cookie}; Secure" if secure else cookie

    def _has_cookie(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(self._name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._digest("value").encode())


def kept_token(state: Path) -> str:
    """The token in the state folder, made there the first time, for its owner's eyes alone."""
    path = state / TOKEN_FILE
    sweep_unfinished(path)
    try:
        found = path.read_text("ascii").strip()
    except FileNotFoundError:
        found = secrets.token_urlsafe(32)
        replace_file(path, f"{found}\n".encode(), private=True)
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} cannot be read ({error}): remove it, and a new token is made") from error
    if len(found) < _SHORTEST:
        raise StoreError(f"{path} holds {len(found)} characters, too few for a token: remove it, and one is made")
    return found


def _by_certificate(uris: tuple[str, ...]) -> Refusal | None:
    """A certificate decides by itself: whoever has proved to be a device is one, whatever token it has."""
    try:
        who = certified(uris)
    except IdentityError as error:
        return Refusal(403, f"the page is for operators: {error}")
    return None if who.role == "operator" else Refusal(403, f"the certificate is of {who}: the page is for operators")


_STRANGE_HOST = Refusal(421, "this page is for this machine: open it by 127.0.0.1 or localhost")
_NO_TOKEN = Refusal(
    401, f"give the token: /?token=…; it is in the file {TOKEN_FILE} in the cloud's state folder. Or an operator's key"
)
_WRONG = Refusal(401, f"that is not the token: it is in the file {TOKEN_FILE} in the cloud's state folder")
