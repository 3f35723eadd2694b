/// Walks through the steps of one cadenced tone, and changes to the next without a click.
///
/// Thread: one thread at a time; allocates only when made.
struct TonePlayer: ~Copyable {
    private struct Slot {
        let steps: UnsafeMutablePointer<PreparedTone.Step>
        var stepCount = 0
        var repeatCount = 0
        var earliestStart = 0
        var tag: Int64 = 0

        init() {
            steps = .allocate(capacity: ToneSpec.maximumStepCount)
        }
    }

    private var current = Slot()
    private var next = Slot()
    private var isSounding = false
    private var hasNext = false
    private var stepIndex = 0
    private var roundsLeft = 0
    private var stepStart = 0
    /// `Int.max` for a step without end.
    private var stepEnd = 0
    private var isReleased = false

    init() {}

    deinit {
        current.steps.deallocate()
        next.steps.deallocate()
    }

    var isActive: Bool { isSounding || hasNext }

    /// Copies `tone` into the waiting place, over one that already waits there.
    mutating func play(_ tone: PreparedTone, earliestStart: Int, tag: Int64) {
        for index in 0..<tone.stepCount {
            (next.steps + index).initialize(to: tone.steps[index])
        }
        next.stepCount = tone.stepCount
        next.repeatCount = tone.repeatCount
        next.earliestStart = earliestStart
        next.tag = tag
        hasNext = true
    }

    mutating func forgetNext() {
        hasNext = false
    }

    /// Ends the tone at once, without a fade.
    mutating func forget(_ notices: RingBuffer<ToneNotice>) {
        hasNext = false
        guard isSounding else { return }
        isSounding = false
        notices.push(note(.toneEnded, offset: 0))
    }

    /// Makes the tone that sounds end by frame `position` + `ramp`.
    mutating func release(at position: Int, ramp: Int) {
        guard isSounding else { return }
        isReleased = true
        let isSilent = current.steps[stepIndex].mix.count == 0
        stepEnd = min(stepEnd, position &+ (isSilent ? 0 : ramp))
    }

    mutating func render(
        into samples: inout MutableSpan<Int16>,
        frameCount: Int,
        position: Int,
        mixer: ToneMixer,
        notices: RingBuffer<ToneNotice>
    ) {
        let blockEnd = position &+ frameCount
        var now = position
        while now < blockEnd {
            guard isSounding else {
                guard hasNext else { return }
                let start = max(next.earliestStart, now)
                guard start < blockEnd else { return }
                beginNext(at: start)
                notices.push(note(.toneStarted, offset: start &- position))
                now = start
                continue
            }
            let count = min(blockEnd, stepEnd) &- now
            if count > 0, current.steps[stepIndex].mix.count > 0 {
                mixer.add(
                    current.steps[stepIndex].mix,
                    to: &samples,
                    firstFrame: now &- position,
                    count: count,
                    position: now &- stepStart,
                    length: stepEnd == .max ? Int.max : stepEnd &- stepStart
                )
            }
            now &+= max(0, count)
            guard now == stepEnd else { return }
            guard !advance() else { continue }
            isSounding = false
            notices.push(note(.toneEnded, offset: now &- position))
        }
    }

    /// Begins the step after the one that has just ended; false when there is none.
    private mutating func advance() -> Bool {
        guard !isReleased else { return false }
        stepIndex &+= 1
        if stepIndex == current.stepCount {
            guard roundsLeft != 1 else { return false }
            if roundsLeft != .max { roundsLeft &-= 1 }
            stepIndex = 0
        }
        beginStep(at: stepEnd)
        return true
    }

    private mutating func beginNext(at start: Int) {
        swap(&current, &next)
        hasNext = false
        isSounding = true
        isReleased = false
        roundsLeft = current.repeatCount
        stepIndex = 0
        beginStep(at: start)
    }

    private mutating func beginStep(at start: Int) {
        let frameCount = current.steps[stepIndex].frameCount
        stepStart = start
        stepEnd = frameCount == .max ? .max : start &+ frameCount
    }

    private func note(_ kind: ToneNotice.Kind, offset: Int) -> ToneNotice {
        ToneNotice(kind: kind, digit: nil, frameOffset: offset, tag: current.tag)
    }
}
