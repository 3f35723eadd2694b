internal import Foundation
internal import GRDB

/// Values of columns. The file may have been damaged in any way that SQLite does not see, so a value of another kind is an
/// error here, and never ends the process.
extension Row {
    func string(_ column: String) throws -> String {
        guard let string = try optionalString(column) else { throw wrong(column) }
        return string
    }

    func optionalString(_ column: String) throws -> String? {
        switch (self[column] as DatabaseValue).storage {
        case .null: return nil
        case .string(let string): return string
        case .blob(let bytes): return String(decoding: bytes, as: UTF8.self)
        case .int64, .double: throw wrong(column)
        }
    }

    func integer(_ column: String) throws -> Int64 {
        guard let integer = try optionalInteger(column) else { throw wrong(column) }
        return integer
    }

    func optionalInteger(_ column: String) throws -> Int64? {
        switch (self[column] as DatabaseValue).storage {
        case .null: return nil
        case .int64(let integer): return integer
        case .double, .string, .blob: throw wrong(column)
        }
    }

    func optionalDate(_ column: String) throws -> Date? {
        switch (self[column] as DatabaseValue).storage {
        case .null: return nil
        case .double(let seconds): return Date(timeIntervalSince1970: seconds)
        case .int64, .string, .blob: throw wrong(column)
        }
    }

    func date(_ column: String) throws -> Date {
        guard let date = try optionalDate(column) else { throw wrong(column) }
        return date
    }

    /// The process in two columns; nil when they are empty.
    func process(_ pidColumn: String, _ startColumn: String) throws -> ProcessIdentity? {
        guard let pid = try optionalInteger(pidColumn), let start = try optionalInteger(startColumn) else { return nil }
        guard let pid = Int32(exactly: pid), let start = UInt64(exactly: start) else { throw wrong(pidColumn) }
        return ProcessIdentity(pid: pid, startTime: start)
    }

    private func wrong(_ column: String) -> DatabaseError {
        DatabaseError(resultCode: .SQLITE_CORRUPT, message: "column \(column) holds a value of a wrong kind")
    }
}

extension Int64 {
    /// The result of a computation with values of columns, which may be any after damage.
    static func checked(_ result: (partialValue: Int64, overflow: Bool)) throws -> Int64 {
        guard !result.overflow else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a column holds a number beyond all bounds")
        }
        return result.partialValue
    }
}

extension String {
    /// The bytes under which the string is kept and found.
    var bytes: Data { Data(utf8) }
}
