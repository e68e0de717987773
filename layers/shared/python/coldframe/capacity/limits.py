"""AWS's quotas that a template or a bundle can break, with where they are written and when that was read."""

from dataclasses import dataclass

_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
_HTTP_API = "https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html"
_REST_API = "https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-execution-service-limits-table.html"
_RUNTIME = "https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html"
_SNAPSTART = "https://docs.aws.amazon.com/lambda/latest/dg/snapstart.html"


@dataclass(frozen=True)
class Quota:
    """A number that AWS holds to. unit: how it is told."""

    value: int
    unit: str
    source: str
    read: str = "2026-11-20"

    def __str__(self) -> str:
        return f"{self.value:,} {self.unit} ({self.source}, read {self.read})"


TIMEOUT = Quota(900, "s", _LAMBDA)
MEMORY = Quota(10_240, "MB", _LAMBDA)
STORAGE = Quota(10_240, "MB", _LAMBDA)
ENVIRONMENT = Quota(4096, "bytes of environment variables", _LAMBDA)
LAYERS = Quota(5, "layers", _LAMBDA)
PAYLOAD = Quota(6 * 1024 * 1024, "bytes each way", _LAMBDA)
ZIP = Quota(250 * 1024 * 1024, "bytes unzipped, layers included", _LAMBDA)
IMAGE = Quota(10 * 1024 * 1024 * 1024, "bytes uncompressed", _LAMBDA)
CONCURRENCY = Quota(1000, "environments of an account in a region, until AWS raises it", _LAMBDA)
UNRESERVED = Quota(
    100,
    "environments that must stay unreserved",
    "https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html",
)
INTEGRATION = Quota(30_000, "ms that an HTTP API waits", _HTTP_API)
BODY = Quota(10 * 1024 * 1024, "bytes of a request", _HTTP_API)
HEADERS = Quota(10_240, "bytes of request line and header values, of an HTTP API", _HTTP_API, "2026-11-21")
REST_HEADERS = Quota(10_240, "bytes of header values, of a REST API", _REST_API, "2026-11-21")
INIT = Quota(10, "s of init on demand", _RUNTIME)
INIT_AHEAD = Quota(130, "s of init ahead of traffic, or the function's timeout if that is longer", _RUNTIME)
SNAPSTART_STORAGE = Quota(512, "MB of /tmp with SnapStart", _SNAPSTART)
ITEM = Quota(
    400 * 1024,
    "bytes of a DynamoDB item",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
)
