package import CallBasics
import Synchronization

/// How loud something is to be, and for what reasons it is silent: the state that a `GainFilter` follows.
///
/// Thread: any; it can be read as well as set, and nothing of it can be lost on the way.
final class GainControl: Sendable {
    /// Why it is silent, if it is.
    private let switches = Switches()
    private let level: Atomic<UInt64>
    /// How often anything was set: all that a filter asks in most ticks.
    private let changes = Atomic<UInt64>(0)

    /// A gain of `gain`.
    init(_ gain: Decibels = .unity) {
        level = Atomic(gain.value.bitPattern)
    }

    /// The gain while it is not silent.
    var gain: Decibels {
        get { Decibels(Double(bitPattern: level.load(ordering: .relaxed))) }
        set {
            level.store(newValue.value.bitPattern, ordering: .relaxed)
            changes.wrappingAdd(1, ordering: .releasing)
        }
    }

    /// Makes `reason` for silence hold, or hold no longer.
    func set(_ reason: Switches.Reason, _ holds: Bool) {
        switches.set(reason, holds)
        changes.wrappingAdd(1, ordering: .releasing)
    }

    /// Whether `reason` for silence holds.
    func holds(_ reason: Switches.Reason) -> Bool { switches.holds(reason) }

    /// Whether there is no reason for silence.
    var isOn: Bool { switches.isOn }

    /// Another number after each change; who sees it sees the change.
    var changeCount: UInt64 { changes.load(ordering: .acquiring) }
}

/// Makes what passes louder or quieter, or mutes it, without a click.
///
///     audio ─► gain ─► audio
///
/// A change is spread over one tick. Samples that would leave 16 bits are clipped.
package final class GainFilter: Filter, @unchecked Sendable {
    /// The gains that can be asked for; quieter is silence.
    package static let range = Decibels.silence...Decibels(30)

    private let control: GainControl
    private var knownChanges: UInt64
    private var current: GainFactor
    private var target: GainFactor

    /// A fixed gain of `gain` for audio of `format`.
    package convenience init(format: AudioFormat, gain: Decibels = .unity) {
        self.init(format: format, GainControl(gain))
    }

    /// A gain for audio of `format` that follows `control`.
    init(format: AudioFormat, _ control: GainControl) {
        self.control = control
        knownChanges = control.changeCount
        target = GainFactor(control.isOn ? control.gain : .silence)
        current = target
        super.init(
            FilterDescription(
                name: "gain",
                purpose: "makes louder, quieter, or silent",
                inputs: [.audio(format)],
                outputs: [.audio(format)],
                worksInPlace: true
            )
        )
    }

    private func follow() {
        let changes = control.changeCount
        guard changes != knownChanges else { return }
        knownChanges = changes
        target = GainFactor(control.isOn ? control.gain : .silence)
    }

    package override func process(_ io: borrowing FilterIO) {
        follow()
        let (source, output) = (io.input(), io.output())
        guard current == target else {
            var samples = output.mutableSamples
            scale(source.samples, into: &samples, from: current, to: target)
            current = target
            return
        }
        if current.isUnity {
            output.copy(from: source)
        } else if current.isZero {
            output.fillWithSilence()
        } else if source.base == output.base {
            var samples = output.mutableSamples
            scale(&samples, by: current)
        } else {
            var samples = output.mutableSamples
            scale(source.samples, into: &samples, by: current)
        }
    }
}

/// A linear factor in fixed point, with as many fractional bits as leave room for a 16-bit sample in 32 bits.
struct GainFactor: Equatable, BitwiseCopyable {
    let factor: Int32
    let shift: Int32

    init(_ gain: Decibels) {
        let limited = min(gain, GainFilter.range.upperBound)
        let amplitude = limited.value.isNaN ? 0 : limited.amplitude
        shift = amplitude < 2 ? 14 : 10
        factor = Int32((amplitude * Double(1 << shift)).rounded())
    }

    var isUnity: Bool { factor == 1 << shift }
    var isZero: Bool { factor == 0 }
}

/// Scales every sample of `source` into `target`, which has as many.
@_noAllocation @_noLocks
func scale(_ source: Span<Int16>, into target: inout MutableSpan<Int16>, by gain: GainFactor) {
    let (factor, shift) = (gain.factor, gain.shift)
    let half = Int32(1) &<< (shift &- 1)
    for index in 0..<min(source.count, target.count) {
        target[index] = Int16(clamping: (Int32(source[index]) &* factor &+ half) &>> shift)
    }
}

/// Scales every sample where it lies.
///
/// Two spans over the same memory would not become vector code, nor, in place, would `Int16(clamping:)`.
@_noAllocation @_noLocks
func scale(_ samples: inout MutableSpan<Int16>, by gain: GainFactor) {
    let (factor, shift) = (gain.factor, gain.shift)
    let half = Int32(1) &<< (shift &- 1)
    for index in 0..<samples.count {
        let scaled = (Int32(samples[index]) &* factor &+ half) &>> shift
        samples[index] = Int16(truncatingIfNeeded: min(max(scaled, -32768), 32767))
    }
}

/// Scales every sample of `source` into `target` by a gain that goes evenly from `start` to `end`.
@_noAllocation @_noLocks
func scale(_ source: Span<Int16>, into target: inout MutableSpan<Int16>, from start: GainFactor, to end: GainFactor) {
    let count = min(source.count, target.count)
    let first = Float(start.factor) / Float(Int32(1) &<< start.shift)
    let last = Float(end.factor) / Float(Int32(1) &<< end.shift)
    let step = (last - first) / Float(max(count, 1))
    for index in 0..<count {
        let scaled = Float(source[index]) * (first + step * Float(index))
        target[index] = Int16(clamping: Int32(scaled))
    }
}
