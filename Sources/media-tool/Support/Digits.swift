import ArgumentParser
import MediaEngine

/// A digit string that was checked when it was read.
struct Digits: ExpressibleByArgument {
    let sequence: DTMFSequence

    /// Never nil, since a wrong character must be named: `validate` does.
    init?(argument: String) {
        text = argument
        sequence = (try? DTMFSequence(parsing: argument)) ?? DTMFSequence([])
    }

    private let text: String

    /// Refuses as wrong usage what is no digit string, and one without a key.
    func validate(limit: Int? = nil) throws {
        do throws(ToneError) {
            _ = try DTMFSequence(parsing: text)
        } catch {
            throw ValidationError(error.message)
        }
        guard !sequence.digits.isEmpty else {
            throw ValidationError("The digit string '\(text)' has no digit. Use 0-9, *, #, A-D.")
        }
        if let limit, sequence.elements.count > limit {
            throw ValidationError(
                "The digit string has \(sequence.elements.count) digits and pauses, more than the \(limit) that can be "
                    + "sent at once. Send it in parts."
            )
        }
    }

    /// How long the digits and pauses take, with `duration` and `gap` for each digit.
    func length(duration: Duration, gap: Duration) -> Duration {
        sequence.elements.reduce(.zero) { sum, element in
            switch element {
            case .digit: sum + duration + gap
            case .pause(let pause): sum + pause
            }
        }
    }
}
