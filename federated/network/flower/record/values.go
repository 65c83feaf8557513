package record

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"grange/federated/network/flower/protocol"
)

// Value is a name and a number or a text: an int64, float64, bool or string.
type Value struct {
	Name  string
	Value any
}

// NewConfig is an object of kind ConfigRecord.
func NewConfig(values []Value) (Object, error) {
	var config protocol.ConfigRecord
	for _, v := range values {
		item := &protocol.ConfigRecord_Item{Key: v.Name, Value: &protocol.ConfigRecordValue{}}
		switch value := v.Value.(type) {
		case int64:
			item.Value.Value = &protocol.ConfigRecordValue_Sint64{Sint64: value}
		case float64:
			item.Value.Value = &protocol.ConfigRecordValue_Double{Double: value}
		case bool:
			item.Value.Value = &protocol.ConfigRecordValue_Bool{Bool: value}
		case string:
			item.Value.Value = &protocol.ConfigRecordValue_String_{String_: value}
		default:
			return Object{}, fmt.Errorf("%w: %s is a %T", ErrFormat, v.Name, v.Value)
		}
		config.Items = append(config.Items, item)
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(&config)
	return Object{Kind: ConfigRecord, Body: body}, err
}

// ParseConfig reads the single values of a ConfigRecord; lists and bytes are left out.
func ParseConfig(encoded []byte) (map[string]any, error) {
	o, err := expect(ConfigRecord, encoded)
	if err != nil {
		return nil, err
	}
	var config protocol.ConfigRecord
	if err := proto.Unmarshal(o.Body, &config); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	values := map[string]any{}
	for _, item := range config.Items {
		switch value := item.GetValue().GetValue().(type) {
		case *protocol.ConfigRecordValue_Sint64:
			values[item.Key] = value.Sint64
		case *protocol.ConfigRecordValue_Uint64:
			values[item.Key] = int64(min(value.Uint64, 1<<62))
		case *protocol.ConfigRecordValue_Double:
			values[item.Key] = value.Double
		case *protocol.ConfigRecordValue_Bool:
			values[item.Key] = value.Bool
		case *protocol.ConfigRecordValue_String_:
			values[item.Key] = value.String_
		}
	}
	return values, nil
}

// ParseMetrics reads the single values of a MetricRecord; lists are left out.
func ParseMetrics(encoded []byte) (map[string]any, error) {
	o, err := expect(MetricRecord, encoded)
	if err != nil {
		return nil, err
	}
	var metrics protocol.MetricRecord
	if err := proto.Unmarshal(o.Body, &metrics); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	values := map[string]any{}
	for _, item := range metrics.Items {
		switch value := item.GetValue().GetValue().(type) {
		case *protocol.MetricRecordValue_Sint64:
			values[item.Key] = value.Sint64
		case *protocol.MetricRecordValue_Uint64:
			values[item.Key] = int64(min(value.Uint64, 1<<62))
		case *protocol.MetricRecordValue_Double:
			values[item.Key] = value.Double
		}
	}
	return values, nil
}

// NewMessage is a message's object: what it says of itself, and the RecordDict it carries.
func NewMessage(message *protocol.Message, content ID) (Object, error) {
	bare := proto.CloneOf(message)
	if bare.Metadata != nil {
		bare.Metadata.MessageId = "" // it is the object's name
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(bare)
	return Object{Kind: Message, Children: []ID{content}, Body: body}, err
}

// ParseMessage reads a message's object, and which RecordDict it carries: none if it reports an error.
func ParseMessage(encoded []byte) (*protocol.Message, *ID, error) {
	o, err := expect(Message, encoded)
	if err != nil {
		return nil, nil, err
	}
	message := &protocol.Message{}
	if err := proto.Unmarshal(o.Body, message); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	switch {
	case message.Error != nil && len(o.Children) == 0:
		return message, nil, nil
	case message.Error == nil && len(o.Children) == 1:
		return message, &o.Children[0], nil
	}
	return nil, nil, fmt.Errorf("%w: a message with %d contents", ErrFormat, len(o.Children))
}
