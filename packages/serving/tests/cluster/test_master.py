"""Queues, choice of workers, what happens to instances of workers that are lost."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mycelia_serving.errors import Code, ServingError

WAIT_S = 60.0


# ---- answers ---------------------------------------------------------------------------------------------


def test_results_come_back_in_the_order_of_the_request(fakes):
    _, (worker,), caller = fakes(capacity=2)
    number, _ = caller.send(1, 2, 3, 4, 5)
    while number not in caller.replies:
        worker.answer()
    assert caller.values(number) == [1, 2, 3, 4, 5]
    assert caller.wait(number).version == 1


def test_a_bad_instance_leaves_the_others_alone(fakes):
    _, (worker,), caller = fakes(quick=True)
    unread = ServingError(Code.INVALID_INPUTS, "too short")
    number, _ = caller.send(1, {"z": np.int64(2)}, unread, 4)
    assert caller.values(number) == [1, Code.INVALID_INPUTS, Code.INVALID_INPUTS, 4]
    assert "'x'" in caller.wait(number).results[1].message


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"servable": "sub"}, Code.NOT_FOUND),
        ({"servable": "s" * 1_000_000}, Code.NOT_FOUND),
        ({"method": "other"}, Code.NOT_FOUND),
        ({"version": 7}, Code.NOT_FOUND),
        ({"deadline": 0.0}, Code.DEADLINE),
    ],
)
def test_what_cannot_be_answered_is_refused_at_once(fakes, change, code):
    _, _, caller = fakes()
    number, _ = caller.send(1, **change)
    error = caller.wait(number).error
    assert error.code == code
    assert len(error.message) < 400


def test_no_instances_is_an_error(fakes):
    _, _, caller = fakes()
    number, _ = caller.send()
    assert caller.values(number) == [Code.INVALID_INPUTS]


def test_a_full_queue_refuses_and_takes_again_when_there_is_room(fakes):
    _, (worker,), caller = fakes(capacity=1, options={"max_enqueued_requests": 2})
    sent = [caller.send(i)[0] for i in range(4)]
    assert caller.values(sent[3]) == [Code.TOO_MANY]
    worker.answer()
    again, _ = caller.send(9)
    while again not in caller.replies:
        worker.answer()
    assert [caller.values(i) for i in (*sent[:3], again)] == [[0], [1], [2], [9]]


def test_a_client_fills_only_its_share_of_the_queue(fakes):
    master, (worker,), caller = fakes(capacity=1, options={"max_enqueued_requests": 9})
    sent = [caller.send(i, peer="a")[0] for i in range(9)]  # one is with the worker
    assert [n for n in sent if n in caller.replies] == sent[6:]
    assert caller.values(sent[8]) == [Code.TOO_MANY]
    assert "5 of them from this client" in caller.wait(sent[8]).error.message
    sent += [caller.send(i, peer="b")[0] for i in range(9, 12)]
    assert caller.values(sent[11]) == [Code.TOO_MANY]
    sent.append(caller.send(12)[0])  # this process
    while master.waiting:
        worker.answer()
    worker.answer()
    assert [caller.values(n) for n in (*sent[:6], *sent[9:11], sent[12])] == [
        [i] for i in (0, 1, 2, 3, 4, 5, 9, 10, 12)
    ]
    again = [caller.send(i, peer="a")[0] for i in range(6)]
    assert not any(n in caller.replies for n in again), "its share is there again"


def test_clients_take_turns_by_instances(fakes):
    _, (worker,), caller = fakes(capacity=1)
    for peer, values in (("a", (0,)), ("a", (1, 2, 3)), ("a", (4,)), ("a", (5,)), ("b", (10,)), ("b", (11,))):
        caller.send(*values, peer=peer)
    caller.send(20, 21, 22, peer="c")
    caller.send(23, peer="c")
    order = []
    while worker.held:
        order += worker.values
        worker.answer()
    assert order == [0, 1, 2, 3, 10, 20, 21, 22, 11, 4, 23, 5]


def test_priority_goes_first_and_methods_take_turns(fakes):
    infos = (fakes.info("echo"), fakes.info("other"))
    _, (worker,), caller = fakes(capacity=1, infos=infos)
    for value, method, priority in [
        (0, "echo", 0),
        (1, "echo", 0),
        (2, "echo", 0),
        (3, "other", 0),
        (4, "echo", 5),
    ]:
        caller.send(value, method=method, priority=priority)
    order = []
    while worker.held:
        order += worker.values
        worker.answer()
    assert order == [0, 4, 3, 1, 2]


# ---- workers ---------------------------------------------------------------------------------------------


def test_work_goes_to_the_worker_with_most_free_slots_in_turn(fakes):
    _, workers, caller = fakes(3, capacity=2)
    for i in range(3):
        caller.send(i)
    assert [len(w.held) for w in workers] == [1, 1, 1]
    workers[1].answer()
    caller.send(3)
    assert [len(w.held) for w in workers] == [1, 1, 1]
    for i in range(4, 8):
        caller.send(i)
    assert [len(w.held) for w in workers] == [2, 2, 2]


def test_a_worker_that_is_late_gets_no_more_work(fakes):
    _, workers, caller = fakes(2, capacity=8)
    for i in range(4):  # what is usual
        caller.send(i)
        for worker in workers:
            worker.answer()
    slow, _ = caller.send(100)
    stuck = next(w for w in workers if w.held)
    free = next(w for w in workers if not w.held)
    time.sleep(0.15)
    for i in range(6):
        caller.send(i)
    assert stuck.values == [100]
    assert len(free.held) == 6


def test_instances_go_in_batches_of_the_model(fakes):
    _, workers, caller = fakes(2, capacity=8, infos=(fakes.info(batch_size=4),))
    caller.send(*range(12))
    assert sorted(w.sizes for w in workers) == [[4], [4, 4]]


def test_a_cancelled_call_is_not_answered_and_leaves_the_queue(fakes):
    master, (worker,), caller = fakes(capacity=1)
    first, _ = caller.send(1)
    second, call = caller.send(2)
    third, _ = caller.send(3)
    call.cancel()
    assert master.waiting == 1
    worker.answer()
    assert worker.values == [3]
    worker.answer()
    assert caller.values(third) == [3]
    assert second not in caller.replies


def test_a_deadline_is_kept_in_the_queue_and_in_a_worker(fakes):
    _, (worker,), caller = fakes(capacity=1)
    soon = time.monotonic() + 0.05
    running, _ = caller.send(1, deadline=soon)
    queued, _ = caller.send(2, deadline=soon)
    assert caller.values(running) == [Code.DEADLINE]
    assert caller.values(queued) == [Code.DEADLINE]
    worker.answer()
    assert not worker.held
    last, _ = caller.send(3)
    worker.answer()
    assert caller.values(last) == [3]


def test_answers_given_at_once_do_not_nest(fakes):
    _, (worker,), caller = fakes(capacity=1)
    sent = [caller.send(i)[0] for i in range(5000)]
    worker.quick = True
    worker.answer()
    assert [caller.values(i) for i in sent] == [[i] for i in range(5000)]


# ---- workers that are lost -------------------------------------------------------------------------------


def test_work_of_a_lost_worker_goes_to_the_others(fakes):
    master, workers, caller = fakes(2, capacity=4)
    sent = [caller.send(i)[0] for i in range(8)]
    workers[0].die()
    workers[1].quick = True
    workers[1].answer()
    assert [caller.values(i) for i in sent] == [[i] for i in range(8)]
    assert master.lost_workers == 1


def test_answers_of_a_lost_worker_come_too_late(fakes, until):
    master, workers, caller = fakes(2, capacity=4)
    number, _ = caller.send(5)
    holder = next(w for w in workers if w.held)
    other = next(w for w in workers if w is not holder)
    master.lose(holder, "silent")
    until(lambda: other.held)
    holder.answer()
    assert number not in caller.replies
    other.answer()
    assert caller.values(number) == [5]


def test_an_instance_that_takes_two_workers_along_is_answered_alone(fakes, until):
    master, workers, caller = fakes(1, capacity=8)
    poison, *good = [caller.send(i)[0] for i in (666, *range(7))]
    victims = 0
    while not all(number in caller.replies for number in (poison, *good)):
        worker = fakes.worker(capacity=8)
        workers[-1].die()
        workers.append(worker)
        master.add(worker)
        victims += 1

        def poisoned(worker=worker):
            keep = [one for one in worker.held if 666 not in [int(i["x"]) for i in one.instances]]
            bad = len(keep) < len(worker.held)
            if not bad:
                worker.answer()
            return bad or all(n in caller.replies for n in (poison, *good))

        until(poisoned)
    assert caller.values(poison) == [Code.SYSTEM_ERROR]
    assert [caller.values(n) for n in good] == [[i] for i in range(7)]
    assert victims <= 3


def test_two_workers_killed_at_once_cost_no_answer(fakes):
    _, workers, caller = fakes(3, capacity=4)
    sent = [caller.send(i)[0] for i in range(12)]
    workers[0].die()
    workers[1].die()
    workers[2].quick = True
    workers[2].answer()
    assert [caller.values(i) for i in sent] == [[i] for i in range(12)]


def test_a_method_with_side_effects_is_not_run_again(fakes):
    _, workers, caller = fakes(2, infos=(fakes.info(retry=False),))
    number, _ = caller.send(1)
    next(w for w in workers if w.held).die()
    assert caller.values(number) == [Code.WORKER_UNAVAILABLE]


def test_without_any_worker_requests_wait_a_while(fakes):
    master, (worker,), caller = fakes(options={"no_worker_s": 0.3})
    running, _ = caller.send(1)
    worker.die()
    queued, _ = caller.send(2)
    new = fakes.worker(quick=True)
    master.add(new)
    assert caller.values(running) == [1]
    assert caller.values(queued) == [2]
    master.lose(new, "killed")
    lost, _ = caller.send(3)
    assert caller.values(lost) == [Code.SERVABLE_UNAVAILABLE]
    later, _ = caller.send(4)
    assert caller.values(later) == [Code.SERVABLE_UNAVAILABLE]
    assert not master.ready()


def test_a_worker_that_hangs_is_killed_and_its_work_sent_again(make_master, fakes):
    killed = []
    master = make_master(worker_timeout_s=0.2, kill=lambda worker, reason: killed.append(worker))
    stuck, other = fakes.worker(), fakes.worker(quick=True)
    master.add(stuck)
    caller = fakes.caller(master)
    number, _ = caller.send(1)
    master.add(other)
    assert caller.values(number) == [1]
    assert killed == [stuck]


# ---- versions and stopping -------------------------------------------------------------------------------


def test_the_newest_version_answers_once_it_is_published(fakes):
    master, _, caller = fakes(quick=True)
    newer = fakes.worker(version=2, quick=True)
    master.add(newer, publish=False)
    assert caller.wait(caller.send(1)[0]).version == 1
    assert caller.wait(caller.send(1, version=2)[0]).version == 2
    master.publish("add", 2)
    assert caller.wait(caller.send(1)[0]).version == 2
    master.lose(newer, "killed")
    assert caller.wait(caller.send(1)[0]).version == 1


def test_a_retired_version_answers_what_it_has(fakes, until):
    import threading

    master, (worker,), caller = fakes(capacity=1)
    sent = [caller.send(i)[0] for i in range(3)]
    gone = []
    thread = threading.Thread(target=lambda: gone.append(master.retire("add", 1, WAIT_S)))
    thread.start()
    until(lambda: caller.values(caller.send(9)[0]) == [Code.NOT_FOUND])
    worker.quick = True
    worker.answer()
    thread.join()
    assert gone == [[worker]]
    assert [caller.values(i) for i in sent] == [[0], [1], [2]]


def test_stopping_refuses_the_new_and_waits_for_the_old(fakes):
    master, (worker,), caller = fakes()
    old, _ = caller.send(1)
    master.stop_taking()
    assert caller.values(caller.send(2)[0]) == [Code.STOPPING]
    assert not master.drain(0.01)
    worker.answer()
    assert master.drain(WAIT_S)
    assert caller.values(old) == [1]


def test_closing_answers_what_is_left(fakes):
    master, (worker,), caller = fakes(capacity=1)
    sent = [caller.send(i)[0] for i in range(2)]
    master.close()
    assert [caller.values(i) for i in sent] == [[Code.STOPPING], [Code.STOPPING]]
    worker.answer()


def test_workers_without_models_do_not_change_what_methods_look_like(fakes):
    master, (worker,), _ = fakes(1, infos=(fakes.info("echo", batch_size=4),))
    extra = type(worker)(infos=(fakes.info("echo", batch_size=32),))
    extra.has_models = False
    master.add(extra)
    (servable,) = master.describe()
    assert [method.batch_size for method in servable.methods] == [4]
