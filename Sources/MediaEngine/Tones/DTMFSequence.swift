import CallBasics

/// Digits and pauses in the order in which they are dialled.
package struct DTMFSequence: Hashable, Sendable, CustomStringConvertible {
    /// One step of dialling.
    package enum Element: Hashable, Sendable {
        /// A key.
        case digit(DTMFDigit)
        /// Silence in addition to the gap between digits.
        case pause(Duration)
    }

    /// The steps in order.
    package let elements: [Element]

    /// What one `,` stands for.
    package static let pauseDuration: Duration = .seconds(2)

    /// A sequence of the given steps.
    package init(_ elements: [Element]) {
        self.elements = elements
    }

    /// The sequence written as `text`: keys, `,` for a pause of 2 s, and blanks, which mean nothing.
    ///
    /// Throws: `ToneError` with the first character that is none of these and its position, counted from 1.
    package init(parsing text: some StringProtocol) throws(ToneError) {
        var elements: [Element] = []
        for (index, character) in text.enumerated() {
            if let digit = DTMFDigit(character) {
                elements.append(.digit(digit))
            } else if character == "," {
                elements.append(.pause(Self.pauseDuration))
            } else if character != " " && character != "\t" {
                throw ToneError(
                    .invalidDigit,
                    "'\(character)' at position \(index + 1) of the digit string is not a digit. "
                        + "Use 0-9, *, #, A-D (capitals), ',' for a pause of 2 s, and blanks."
                )
            }
        }
        self.elements = elements
    }

    /// The keys without the pauses.
    package var digits: [DTMFDigit] {
        elements.compactMap { element in
            guard case .digit(let digit) = element else { return nil }
            return digit
        }
    }

    /// The keys, with `,` for each pause.
    package var description: String {
        elements.map { element in
            guard case .digit(let digit) = element else { return "," }
            return digit.description
        }.joined()
    }
}
