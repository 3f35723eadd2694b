/// The time of day as messages tell it: `2024-05-01T10:00:00.123Z`.
///
/// Source: RFC 3339, section 5.6
package enum InternetTime {
    /// A time in milliseconds since 1970, UTC.
    package static func text(unixMilliseconds time: Int64) -> String {
        let (days, rest) = time.flooredDivision(by: 86_400_000)
        let (year, month, day) = date(daysSince1970: days)
        let (second, millisecond) = rest.quotientAndRemainder(dividingBy: 1000)
        let clock = [second / 3600, second / 60 % 60, second % 60].map { padded($0, 2) }.joined(separator: ":")
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(clock).\(padded(millisecond, 3))Z"
    }

    /// A day of the Gregorian calendar; years begin in March, so that a leap day is the last of one.
    private static func date(daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = (daysSince1970 + 719_468).flooredDivision(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let year = era * 400 + yearOfEra + (month >= 10 ? 1 : 0)
        return (year, month < 10 ? month + 3 : month - 9, dayOfYear - (153 * month + 2) / 5 + 1)
    }

    private static func padded(_ number: Int64, _ count: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(count - digits.utf8.count, 0)) + digits
    }
}

extension Int64 {
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
