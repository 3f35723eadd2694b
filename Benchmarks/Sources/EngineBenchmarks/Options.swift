/// What the command line asks for.
package struct Options: Sendable {
    package struct Wrong: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    package var only: Set<String> = []
    var speechPath: String?
    package var toolPath: String?
    package var repetitions = 3
    var seconds = 4
    var legs = 20
    package var rounds = 20
    var slack = 1.0
    var isJSON = false

    init(_ arguments: some Sequence<String>, names: [String]) throws {
        var remaining = Array(arguments)[...]
        func value(_ option: String) throws -> String {
            guard let value = remaining.popFirst() else { throw Wrong(description: "\(option) needs a value") }
            return value
        }
        func number(_ option: String) throws -> Int {
            let text = try value(option)
            guard let number = Int(text), number > 0 else { throw Wrong(description: "\(option) \(text) is no count") }
            return number
        }
        while let argument = remaining.popFirst() {
            switch argument {
            case "--only":
                only = Set(try value(argument).split(separator: ",").map(String.init))
                let unknown = only.subtracting(names)
                guard unknown.isEmpty else { throw Wrong(description: "there is no benchmark \(unknown.sorted()[0])") }
            case "--speech": speechPath = try value(argument)
            case "--tool": toolPath = try value(argument)
            case "--repeat": repetitions = try number(argument)
            case "--seconds": seconds = try number(argument)
            case "--legs": legs = max(try number(argument), 2)
            case "--rounds": rounds = try number(argument)
            case "--slack":
                let text = try value(argument)
                guard let number = Double(text), number >= 1 else {
                    throw Wrong(description: "--slack \(text) is not 1 or more")
                }
                slack = number
            case "--json": isJSON = true
            case "--list": throw Wrong(description: names.joined(separator: " "))
            default: throw Wrong(description: "\(argument) is not understood")
            }
        }
    }
}
