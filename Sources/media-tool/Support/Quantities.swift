import ArgumentParser
import MediaEngine

/// Numbers of options, checked against what makes sense, so that the word that is wrong is named.
enum Quantity {
    /// Refuses `value` outside of `range` as wrong usage.
    static func check<Value: Comparable>(
        _ option: String,
        _ value: Value?,
        in range: ClosedRange<Value>,
        _ unit: String = ""
    ) throws {
        guard let value, !range.contains(value) else { return }
        let suffix = unit.isEmpty ? "" : " \(unit)"
        throw ValidationError(
            "The value '\(plain(value))' of '\(option)' is out of range. "
                + "Give \(plain(range.lowerBound)) to \(plain(range.upperBound))\(suffix)."
        )
    }

    /// The number as people write it: without ".0".
    private static func plain(_ value: some Comparable) -> String {
        let text = "\(value)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// The longest run, about a year: what is larger is a slip.
    static let seconds = 0.01...31_536_000.0
}

extension Duration {
    /// The duration of `seconds`, to the nanosecond.
    static func seconds(fraction seconds: Double) -> Duration { .nanoseconds(Int64((seconds * 1e9).rounded())) }

    /// The duration of `milliseconds`, to the nanosecond.
    static func milliseconds(fraction milliseconds: Double) -> Duration {
        .nanoseconds(Int64((milliseconds * 1e6).rounded()))
    }

    /// The duration in seconds, to a thousandth.
    var roundedSeconds: Double { (milliseconds.rounded()) / 1000 }
    /// Milliseconds to the tenth.
    var roundedMilliseconds: Double { (milliseconds * 10).rounded() / 10 }
}
