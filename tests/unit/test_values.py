"""Models on strings, sequences and optionals, as onnxruntime computes them where it can."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto as T
from onnx import helper as h

import ascendsched as asc
from ascendsched.bench.difference import compare
from ascendsched.cli import main
from tests.unit import onnx_models

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is the reference here")
info, node = onnx_models.info, h.make_node
F = np.float32


def text(*values):
    return np.array(values, object)


def sequence(name, dtype=T.FLOAT):
    return h.make_tensor_sequence_value_info(name, dtype, None)


def model_of(nodes, inputs, outputs, constants=None, opset=21):
    model = onnx_models.model(nodes, inputs, outputs, {}, opset)
    for name, given in (constants or {}).items():
        value = np.asarray(given)
        if value.dtype.kind == "O":
            model.graph.initializer.append(
                h.make_tensor(name, T.STRING, value.shape, [each.encode() for each in value.ravel().tolist()])
            )
        else:
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    model.opset_import.append(h.make_opsetid("ai.onnx.ml", 4))
    model.ir_version = 10
    return model


def run(model, feeds):
    """Both modes, which must agree."""
    results = [list(asc.compile(model, mode=mode, threads=1).run(feeds).values()) for mode in ("host", "sink")]
    check(*results)
    return results[0]


def check(ours, wanted):
    assert len(ours) == len(wanted)
    for one, two in zip(ours, wanted, strict=True):
        if isinstance(two, list):
            check(one, two)
        elif two is None:
            assert one is None
        else:
            array = np.asarray(two)
            assert one.shape == array.shape
            assert (one.dtype.kind == "O") == (array.dtype.kind in "OU")
            np.testing.assert_array_equal(one, array.astype(one.dtype))


def check_like_onnxruntime(model, feeds):
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    check(run(model, feeds), session.run(None, feeds))


WORDS = text("b", "a", "", "é", "b", "Zug").reshape(2, 3)
I64 = np.int64
CASES = {
    "Identity": ([], {}),
    "Concat": (["x"], {"axis": -1}),
    "Expand": ([np.array([2, 2, 3])], {}),
    "Flatten": ([], {"axis": 0}),
    "Gather": ([np.array([[2, -1], [0, 0]])], {"axis": 1}),
    "GatherElements": ([np.array([[2, -1]])], {"axis": 1}),
    "GatherND": ([np.array([[1, 2], [0, -1]])], {}),
    "Reshape": ([np.array([0, -1, 1])], {}),
    "Shape": ([], {"start": 1}),
    "Size": ([], {}),
    "Slice": ([np.array([5, -1]), np.array([-9, -9]), np.array([0, 1]), np.array([-1, -2])], {}),
    "Split": ([np.array([1, 2])], {"axis": 1}),
    "Compress": ([np.array([True, False, True])], {"axis": 1}),
    "Squeeze": ([], {}),
    "Tile": ([np.array([2, 1])], {}),
    "Transpose": ([], {"perm": [1, 0]}),
    "Unsqueeze": ([np.array([0, -1])], {}),
    "Where": (["x"], {}),
    "Equal": ([text("b", "a", "q")], {}),
    "StringConcat": ([text("!", "", "ü")], {}),
    "StringSplit": ([], {"delimiter": "u"}),
    "Unique": ([], {}),
    "Cast": ([], {"to": T.STRING}),
}


@pytest.mark.parametrize("op", CASES)
def test_operator_on_strings_is_that_of_onnxruntime(op):
    operands, attributes = CASES[op]
    constants = {f"c{k}": value for k, value in enumerate(operands) if not isinstance(value, str)}
    names = ["x", *(value if isinstance(value, str) else f"c{k}" for k, value in enumerate(operands))]
    if op == "Where":
        names, constants = ["m", "x", "x"], {"m": np.array([[True], [False]])}
    count = {"Split": 2, "StringSplit": 2, "Unique": 4}.get(op, 1)
    outputs = [f"y{k}" for k in range(count)]
    types = {"Equal": T.BOOL, "Shape": T.INT64, "Size": T.INT64}
    infos = [info(name, types.get(op, T.STRING if name == "y0" or op == "Split" else T.INT64)) for name in outputs]
    model = model_of([node(op, names, outputs, **attributes)], [info("x", T.STRING, ["n", 3])], infos, constants)
    check_like_onnxruntime(model, {"x": WORDS})


@pytest.mark.parametrize("starts", [[-9, 0], [1, 9], [-1, -2]])
@pytest.mark.parametrize("steps", [[1, 2], [-1, -2], [-(2**40), 2**40]])
def test_strings_are_sliced_as_numbers_are(starts, steps):
    constants = {"s": np.array(starts), "e": np.array([-(2**62), 2**62]), "a": np.array([0, -1]), "t": np.array(steps)}
    outputs = []
    for dtype, x in ((T.STRING, WORDS), (T.INT64, np.arange(6).reshape(2, 3))):
        slice_ = node("Slice", ["x", *constants], ["y"])
        outputs += run(model_of([slice_], [info("x", dtype, [2, 3])], [info("y", dtype)], constants), {"x": x})
    words, numbers = outputs
    assert words.tolist() == WORDS.ravel()[numbers].tolist()


def test_numbers_become_text_and_text_becomes_numbers():
    numbers = np.array([0.1, -2.5, 1e30, np.nan, np.inf, 16777217, 0], F)
    to_text = model_of([node("Cast", ["x"], ["y"], to=T.STRING)], [info("x", T.FLOAT, ["n"])], [info("y", T.STRING)])
    check_like_onnxruntime(to_text, {"x": numbers})
    for dtype, values in ((T.FLOAT, text("1.5", "-1e3", "7")), (T.INT64, text("12", "-7")), (T.DOUBLE, text("0.1"))):
        back = model_of([node("Cast", ["x"], ["y"], to=dtype)], [info("x", T.STRING, ["n"])], [info("y", dtype)])
        check_like_onnxruntime(back, {"x": values})
    with pytest.raises(asc.GraphError, match=r"Cast .*could not convert"):
        run(back, {"x": text("no number")})


def test_words_become_numbers_and_numbers_words():
    domain = {"domain": "ai.onnx.ml"}
    to_number = node("LabelEncoder", ["x"], ["y"], keys_strings=["a", "b"], values_int64s=[5, 6], **domain)
    check_like_onnxruntime(model_of([to_number], [info("x", T.STRING, [2, 3])], [info("y", T.INT64)]), {"x": WORDS})
    to_word = node(
        "LabelEncoder", ["x"], ["y"], keys_floats=[1.0, float("nan")], values_strings=["one", "none"], **domain
    )
    feeds = {"x": np.array([1, 2, np.nan], F)}
    check_like_onnxruntime(model_of([to_word], [info("x", T.FLOAT, [3])], [info("y", T.STRING)]), feeds)
    mapper = node("CategoryMapper", ["x"], ["y"], cats_strings=["a", "b"], cats_int64s=[7, 9], **domain)
    check_like_onnxruntime(model_of([mapper], [info("x", T.STRING, [2, 3])], [info("y", T.INT64)]), {"x": WORDS})


def test_patterns_are_matched_in_linear_time():
    pytest.importorskip("re2", reason="patterns need google-re2")
    match = node("RegexFullMatch", ["x"], ["y"], pattern="(a+)+b")
    model = model_of([match], [info("x", T.STRING, ["n"])], [info("y", T.BOOL)])
    (found,) = run(model, {"x": text("a" * 5000, "aab")})
    assert found.tolist() == [False, True]
    broken = model_of(
        [node("RegexFullMatch", ["x"], ["y"], pattern="(")], [info("x", T.STRING, [1])], [info("y", T.BOOL)]
    )
    with pytest.raises(asc.GraphError, match=r"RegexFullMatch .*pattern"):
        run(broken, {"x": text("a")})


def test_an_attribute_that_is_a_graph_is_damage():
    encode = node("LabelEncoder", ["x"], ["y"], keys_strings=["a"], values_int64s=[1], domain="ai.onnx.ml")
    encode.attribute[0].type = onnx.AttributeProto.GRAPH
    model = model_of([encode], [info("x", T.STRING, ["n"])], [info("y", T.INT64, ["n"])])
    with pytest.raises(asc.GraphError, match=r"LabelEncoder.*'keys_strings' is a GraphProto; the file is damaged"):
        asc.compile(model)


def tokens_model():
    """Counts of n-grams of normalised words, scaled: text in, numbers out."""
    nodes = [
        node("StringNormalizer", ["x"], ["w"], case_change_action="NONE", is_case_sensitive=1, stopwords=["the"]),
        node("TfIdfVectorizer", ["w"], ["c"], max_gram_length=1, min_gram_length=1, max_skip_count=0, mode="TF",
             ngram_counts=[0], ngram_indexes=[0, 1, 2], pool_strings=["cat", "dog", "sat"]),
        node("Mul", ["c", "two"], ["y"]),
    ]  # fmt: skip
    return model_of(nodes, [info("x", T.STRING, ["n"])], [info("y")], {"two": np.array(2, F)})


def test_a_model_reads_text_and_gives_numbers():
    model = tokens_model()
    check_like_onnxruntime(model, {"x": text("the", "cat", "sat", "cat")})
    exe = asc.compile(model, threads=1)
    exe.run({"x": ["the", "cat"]})
    assert exe.stats()["host_calls"] >= 2
    assert "host call: StringNormalizer by ascendsched.values" in exe.explain()
    assert exe.inputs[0].dtype == "string"


def test_a_model_of_text_survives_saving(tmp_path):
    exe = asc.compile(tokens_model(), threads=1)
    feeds = {"x": text("the", "cat", "sat", "cat")}
    expected = exe.run(feeds)
    exe.save(tmp_path / "m.asc")
    loaded = asc.load(tmp_path / "m.asc")
    np.testing.assert_array_equal(loaded.run(feeds)["y"], expected["y"])
    assert loaded.inputs == exe.inputs


def dynamic_sequence_model():
    """A loop that collects the rows of x that sum to more than 0, and the number of them."""
    steps = [
        node("Gather", ["x", "i"], ["row"]),
        node("ReduceSum", ["row"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["is_kept"]),
        node(
            "If", ["is_kept"], ["s2"],
            then_branch=onnx_models.body([node("SequenceInsert", ["s1", "row"], ["t"])], [], [sequence("t")]),
            else_branch=onnx_models.body([node("Identity", ["s1"], ["e"])], [], [sequence("e")]),
        ),
        node("Identity", ["c"], ["c2"]),
    ]  # fmt: skip
    body = onnx_models.body(
        steps,
        [info("i", T.INT64, []), info("c", T.BOOL, []), sequence("s1")],
        [info("c2", T.BOOL, []), sequence("s2")],
    )
    nodes = [
        node("Shape", ["x"], ["count"], end=1),
        node("Squeeze", ["count"], ["n"]),
        node("SequenceEmpty", [], ["s"]),
        node("Loop", ["n", "", "s"], ["kept"], body=body),
        node("SequenceLength", ["kept"], ["length"]),
        node("SequenceAt", ["kept", "last"], ["y"]),
        node("SequenceErase", ["kept", "last"], ["rest"]),
    ]
    outputs = [sequence("kept"), info("length", T.INT64, []), info("y"), sequence("rest")]
    return model_of(nodes, [info("x", T.FLOAT, ["n", 3])], outputs, {"zero": np.array(0, F), "last": np.array(-1)})


def test_a_loop_collects_a_sequence_whose_length_depends_on_data():
    model = dynamic_sequence_model()
    x = np.arange(-9, 9, dtype=F).reshape(6, 3)
    check_like_onnxruntime(model, {"x": x})
    check_like_onnxruntime(model, {"x": x[::-1].copy()})
    with pytest.raises(asc.GraphError, match=r"SequenceAt .*position -1 in a sequence of 0"):
        run(model, {"x": -np.ones((2, 3), F)})


def test_positions_and_sizes_may_be_computed():
    nodes = [
        node("SplitToSequence", ["x", "sizes"], ["s"], axis=0),
        node("SequenceAt", ["s", "place"], ["y"]),
        node("SequenceInsert", ["s", "y", "place"], ["t"]),
        node("ConcatFromSequence", ["t"], ["z"], axis=0),
    ]
    inputs = [info("x", T.FLOAT, ["n", 2]), info("sizes", T.INT64, ["k"]), info("place", T.INT64, [])]
    model = model_of(nodes, inputs, [info("y"), info("z"), sequence("t")])
    feeds = {"x": np.arange(12, dtype=F).reshape(6, 2), "sizes": np.array([1, 3, 2]), "place": np.array(1)}
    check_like_onnxruntime(model, feeds)
    for place, sizes in ((3, [1, 3, 2]), (0, [1, 1]), (0, [-1, 7])):
        with pytest.raises(asc.GraphError, match=r"^\[host_call\] S"):
            run(model, {**feeds, "place": np.array(place), "sizes": np.array(sizes)})


def test_sequences_of_a_known_length_leave_no_host_call():
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["s"]),
        node("Identity", ["s"], ["t"]),
        node("SequenceInsert", ["t", "x"], ["u"]),
        node("SequenceAt", ["u", "one"], ["y"]),
    ]
    model = model_of(nodes, [info("x", T.FLOAT, [2])], [info("y")], {"one": np.array(1)})
    exe = asc.compile(model, threads=1)
    exe.run({"x": np.ones(2, F)})
    assert exe.stats()["host_calls"] == 0


def test_sequences_go_in_and_out():
    nodes = [node("SequenceInsert", ["s", "x", "at"], ["t"]), node("SequenceLength", ["t"], ["n"])]
    inputs = [sequence("s"), info("x", T.FLOAT, ["n"]), info("at", T.INT64, [])]
    model = model_of(nodes, inputs, [sequence("t"), info("n", T.INT64, [])])
    feeds = {"s": [np.zeros(1, F), np.ones((2, 2), F)], "x": np.ones(3, F), "at": np.array(-1)}
    check_like_onnxruntime(model, feeds)
    exe = asc.compile(model, threads=1)
    assert [value.dtype for value in exe.inputs] == ["sequence(float32)", "float32", "int64"]
    assert len(exe(*feeds.values())[0]) == len(exe.run_async(feeds).wait()["t"]) == len(exe.bind(feeds).run()["t"]) == 3
    with pytest.raises(asc.UnsupportedError, match=r"^\[bind\] output 't' is a sequence"):
        exe.bind(feeds, {"t": np.zeros(3, F)})
    with pytest.raises(asc.GraphError, match="a list of arrays"):
        exe.run({**feeds, "s": np.zeros(3, F)})
    with pytest.raises(asc.GraphError, match="give a value"):
        exe.warmup([{"x": (3,), "at": ()}])
    exe.warmup([{"x": (3,), "at": ()}], {"s": feeds["s"]})


def optional(name, dtype=T.FLOAT):
    kind = h.make_optional_type_proto(h.make_tensor_type_proto(dtype, ["n"]))
    return h.make_value_info(name, kind)


def test_optionals_may_hold_nothing():
    then = onnx_models.body([node("OptionalGetElement", ["x"], ["t"])], [], [info("t")])
    other = onnx_models.body([node("Identity", ["none"], ["e"])], [], [info("e")])
    nodes = [node("OptionalHasElement", ["x"], ["h"]), node("If", ["h"], ["y"], then_branch=then, else_branch=other)]
    model = model_of(nodes, [optional("x")], [info("h", T.BOOL, []), info("y")], {"none": np.array([-1], F)})
    assert [each.tolist() for each in run(model, {"x": None})] == [False, [-1]]
    assert [each.tolist() for each in run(model, {"x": np.array([1, 2], F)})] == [True, [1, 2]]
    bare = model_of([node("OptionalGetElement", ["x"], ["y"])], [optional("x")], [info("y")])
    with pytest.raises(asc.GraphError, match="the optional holds nothing"):
        run(bare, {"x": None})


def test_branches_that_give_different_kinds_are_refused():
    then = onnx_models.body([node("SequenceConstruct", ["x"], ["t"])], [], [sequence("t")])
    other = onnx_models.body([node("Identity", ["x"], ["e"])], [], [info("e")])
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    with pytest.raises(asc.GraphError, match=r"'sequence\(float32\)' and 'a tensor' for one result"):
        asc.compile(model_of(nodes, [info("c", T.BOOL, []), info("x", T.FLOAT, [2])], [info("y")]))


def test_operators_that_do_not_take_strings_are_refused_by_name():
    for nodes in (
        [node("ReduceMax", ["x"], ["y"])],
        [node("Cast", ["x"], ["f"], to=T.FLOAT), node("Clip", ["x"], ["y"])],
        [node("Clip", ["x", "x"], ["y"])],
    ):
        with pytest.raises(asc.UnsupportedError, match=r"reads 'x', a string, which is not supported there"):
            asc.compile(model_of(nodes, [info("x", T.STRING, ["n"])], [info("y")]))


def test_text_that_grows_without_end_meets_the_memory_limit():
    steps = [node("StringConcat", ["s", "s"], ["s2"]), node("Identity", ["c"], ["c2"])]
    body = onnx_models.body(
        steps,
        [info("i", T.INT64, []), info("c", T.BOOL, []), info("s", T.STRING)],
        [info("c2", T.BOOL, []), info("s2", T.STRING)],
    )
    model = model_of(
        [node("Loop", ["n", "", "x"], ["y"], body=body)], [info("x", T.STRING, [1])], [info("y", T.STRING)],
        {"n": np.array(200)},
    )  # fmt: skip
    options = asc.Options(memory_limit_bytes=1 << 20)
    for mode in ("host", "sink"):
        with pytest.raises(asc.OutOfMemoryError):
            asc.compile(model, mode=mode, threads=1, options=options).run({"x": ["growing"]})


def test_values_read_ahead_of_their_node_are_refused():
    nodes = [node("Shape", ["s"], ["y"]), node("StringConcat", ["x", "x"], ["s"])]
    with pytest.raises(asc.AscendSchedError):
        asc.compile(model_of(nodes, [info("x", T.STRING, [1])], [info("y", T.INT64)]))


def test_an_output_that_is_listed_twice_is_there_once():
    model = model_of([node("Optional", ["x"], ["y"])], [info("x", T.FLOAT, [1])], [optional("y"), optional("y")])
    exe = asc.compile(model, threads=1)
    x = np.ones(1, F)
    assert exe.run({"x": x})["y"].tolist() == exe.bind({"x": x}).run()["y"].tolist() == [1]
    assert len(exe(x)) == 2


def test_results_of_any_kind_are_compared_and_described():
    words, list_ = text("a", "b"), [np.ones(2, F), np.zeros(1, F)]
    assert compare({"w": words, "l": list_, "n": None}, {"w": words, "l": list_, "n": None}).max_error == 0
    for wrong in ({"w": text("a", "c")}, {"l": list_[:1]}, {"l": None}, {"n": []}):
        right = {name: {"w": words, "l": list_, "n": None}[name] for name in wrong}
        assert compare(wrong, right).is_wrong
    assert not compare({"l": [np.full(2, 1.0001, F)]}, {"l": [np.ones(2, F)]}).is_wrong


def test_the_command_line_runs_a_model_of_sequences(tmp_path):
    onnx.save(dynamic_sequence_model(), tmp_path / "m.onnx")
    done = CliRunner().invoke(main, ["run", str(tmp_path / "m.onnx"), "--json"])
    assert (done.exit_code, '"sequence"' in done.output) == (0, True)
    onnx.save(tokens_model(), tmp_path / "t.onnx")
    refused = CliRunner().invoke(main, ["run", str(tmp_path / "t.onnx")])
    assert refused.exit_code != 0
    assert "there is no random string" in str(refused.output) + str(refused.exception)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"dims": [7]}, r"3 strings for dimensions \[7\]"),
        ({"dims": [-3]}, r"3 strings for dimensions \[-3\]"),
        ({"string_data": [b"a", b"b", b"\xff"]}, "can't decode byte"),
    ],
)
def test_constants_of_text_that_cannot_be_right_are_refused(damage, message):
    model = model_of([node("StringConcat", ["x", "w"], ["y"])], [info("x", T.STRING, [3])], [info("y", T.STRING)])
    tensor = h.make_tensor("w", T.STRING, [3], [b"a", b"b", b"c"])
    for field, values in damage.items():
        tensor.ClearField(field)
        getattr(tensor, field).extend(values)
    model.graph.initializer.append(tensor)
    with pytest.raises(asc.GraphError, match=rf"^\[onnx\] initializer 'w': .*{message}.*damaged"):
        asc.compile(model)
