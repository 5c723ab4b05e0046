"""Models that are served through inference profiles only: which ids are tried, and when."""

from __future__ import annotations

import pytest

from neurolink_mw.errors import InvalidRequestError, PermissionDeniedError
from neurolink_mw.providers.bedrock.inference_profile import geography, profile_ids
from neurolink_mw.testing.wire import Reply, ScriptedServer, bedrock, bedrock_server

from .wire_builders import HI, MODEL, model

pytestmark = pytest.mark.anyio

WANTS_PROFILE = bedrock.error(
    400,
    "ValidationException",
    f"Invocation of model ID {MODEL} with on-demand throughput isn’t supported. Retry your request with the ID or ARN "
    "of an inference profile that contains this model.",
)
NO_SUCH_ID = bedrock.error(400, "ValidationException", "The provided model identifier is invalid.")


def asked(server: ScriptedServer) -> list[str]:
    return [bedrock.asked(exchange).model_id for exchange in server.journal]


@pytest.mark.parametrize(
    ("region", "prefix"),
    [
        *(("us-east-1", "us"), ("ca-central-1", "us"), ("us-gov-west-1", "us-gov")),
        *(("eu-central-1", "eu"), ("il-central-1", "eu"), ("me-south-1", "eu"), ("af-south-1", "eu")),
        *(("ap-northeast-1", "jp"), ("ap-northeast-3", "jp"), ("ap-northeast-2", "apac"), ("ap-south-1", "apac")),
        *(("ap-southeast-2", "au"), ("ap-southeast-4", "au"), ("ap-southeast-6", "au"), ("ap-southeast-1", "apac")),
        *(("sa-east-1", None), ("mx-central-1", None)),
    ],
)
async def test_a_region_has_the_prefix_of_its_geography(region: str, prefix: str | None) -> None:
    assert geography(region) == prefix


async def test_the_geography_is_tried_before_the_globe() -> None:
    assert profile_ids(MODEL, "eu-west-1") == (f"eu.{MODEL}", f"global.{MODEL}")
    assert profile_ids(MODEL, "sa-east-1") == profile_ids(MODEL, None) == (f"global.{MODEL}",)


@pytest.mark.parametrize(
    "model_id",
    [
        *(f"us.{MODEL}", f"us-gov.{MODEL}", f"apac.{MODEL}", f"global.{MODEL}", f"jp.{MODEL}", f"ca.{MODEL}"),
        f"arn:aws:bedrock:us-east-1::foundation-model/{MODEL}",
        *("my-endpoint", "", "anthropic."),
    ],
)
async def test_an_id_that_is_no_plain_model_id_has_no_profiles(model_id: str) -> None:
    assert profile_ids(model_id, "us-east-1") == ()


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_model_without_on_demand_throughput_is_called_by_its_profile_from_then_on(streamed: bool) -> None:
    with bedrock_server([WANTS_PROFILE, bedrock.answer("a"), bedrock.answer("b")]) as server:
        async with model(server) as one:
            for _ in range(2):
                if streamed:
                    result = await one.do_stream(HI)
                    assert result.response is not None
                    assert result.response.model_id == f"us.{MODEL}"
                    assert [part.type async for part in result.stream][-1] == "finish"
                else:
                    answer = await one.do_generate(HI)
                    assert answer.response is not None
                    assert answer.response.model_id == f"us.{MODEL}"
            assert one.model_id == MODEL
        assert asked(server) == [MODEL, f"us.{MODEL}", f"us.{MODEL}"]


@pytest.mark.parametrize("missing", [WANTS_PROFILE, NO_SUCH_ID], ids=["not there", "no such id"])
async def test_where_the_geography_has_no_profile_the_global_one_is_tried(missing: Reply) -> None:
    with bedrock_server([WANTS_PROFILE, missing, bedrock.answer("a")]) as server:
        async with model(server) as one:
            assert (await one.do_generate(HI)).text == "a"
        assert asked(server) == [MODEL, f"us.{MODEL}", f"global.{MODEL}"]


async def test_where_there_is_no_profile_at_all_the_first_refusal_is_told() -> None:
    with bedrock_server([WANTS_PROFILE, NO_SUCH_ID, NO_SUCH_ID, WANTS_PROFILE], repeat="last") as server:
        async with model(server) as one:
            with pytest.raises(InvalidRequestError, match="on-demand throughput"):
                await one.do_generate(HI)
            assert len(server.journal) == 3
            with pytest.raises(InvalidRequestError, match="on-demand throughput"):
                await one.do_generate(HI)
        assert asked(server)[3] == MODEL


async def test_another_error_of_a_profile_is_told() -> None:
    denied = bedrock.error(403, "AccessDeniedException", "You don't have access to the model.")
    with bedrock_server([WANTS_PROFILE, denied]) as server:
        async with model(server) as one:
            with pytest.raises(PermissionDeniedError, match="don't have access"):
                await one.do_generate(HI)
        assert len(server.journal) == 2


@pytest.mark.parametrize("reply", [NO_SUCH_ID, bedrock.error(400, "ValidationException", "no inference profile")])
async def test_other_refusals_of_the_models_own_id_are_told(reply: Reply) -> None:
    with bedrock_server([reply]) as server:
        async with model(server) as one:
            with pytest.raises(InvalidRequestError):
                await one.do_generate(HI)
        assert len(server.journal) == 1


async def test_what_answered_is_known_to_every_model_of_the_region_and_id() -> None:
    with bedrock_server([WANTS_PROFILE, bedrock.answer("a"), bedrock.answer("b")]) as server:
        for _ in range(2):
            async with model(server) as one:
                await one.do_generate(HI)
        assert asked(server) == [MODEL, f"us.{MODEL}", f"us.{MODEL}"]


async def test_where_the_profile_that_answered_is_refused_later_all_ids_are_tried_again() -> None:
    with bedrock_server([WANTS_PROFILE, bedrock.answer("a"), NO_SUCH_ID, WANTS_PROFILE]) as server:
        server.push(bedrock.answer("b"))
        server.push(bedrock.answer("c"))
        async with model(server) as one:
            for text in "abc":
                assert (await one.do_generate(HI)).text == text
        glob = f"global.{MODEL}"
        assert asked(server) == [MODEL, f"us.{MODEL}", f"us.{MODEL}", MODEL, glob, glob]
